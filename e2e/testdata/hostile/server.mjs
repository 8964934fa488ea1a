// An MCP server every string of which tries something: markup, other directions, terminal
// escapes, characters that nobody sees, a name of one megabyte. For the browser tests.
import { createInterface } from "node:readline";

const markup = `<img src=x onerror="window.__hit=1"><script>window.__hit=1</script><a href="javascript:window.__hit=1">x</a>`;
const unseen = "\u202Eevil\u2066\u200B\u00AD\uFEFF\u0007\u001b[2J\u001b]8;;https://x.example\u0007link\u001b]8;;\u0007\u{E0041}";
const all = markup + unseen;

const schema = {
  type: "object",
  title: all,
  description: all,
  properties: {
    [markup]: { type: "string", title: all, description: all, default: all, enum: [all, "plain"] },
    [unseen]: { type: "object", properties: { [all]: { type: "integer", title: all } } },
    text: { type: "string", title: all },
  },
};

const tool = (name, more = {}) => ({ name, title: all, description: all + " ".repeat(3) + all, inputSchema: schema, ...more });

const tools = [
  tool("say"),
  tool("say_markup" + markup),
  tool("say_unseen" + unseen),
  tool("n".repeat(1 << 20)),
  tool("annotated", { annotations: { title: all, readOnlyHint: true } }),
];

const answers = {
  initialize: () => ({
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: all, title: all, version: all },
    instructions: all,
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": () => ({
    content: [
      { type: "text", text: all + "\n" + "x".repeat(1 << 20) },
      { type: "resource_link", uri: "javascript:window.__hit=1", name: all },
      { type: "image", data: "PHN2Zz48L3N2Zz4=", mimeType: "image/svg+xml" },
    ],
    structuredContent: { [markup]: all, [unseen]: [all, { [all]: null }] },
  }),
};

console.error(all);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  console.error(`${method} ${all}`);
  const answer = answers[method];
  const reply = answer
    ? { jsonrpc: "2.0", id, result: answer() }
    : { jsonrpc: "2.0", id, error: { code: -32601, message: all, data: all } };
  process.stdout.write(JSON.stringify(reply) + "\n");
}
