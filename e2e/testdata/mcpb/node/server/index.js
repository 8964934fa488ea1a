// An MCP server with one tool, which says what it was started with.
const lines = require("node:readline").createInterface({ input: process.stdin });
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");

lines.on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  switch (method) {
    case "initialize":
      answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "greeter", version: "1.2.3" } });
      break;
    case "tools/list":
      answer(id, { tools: [{ name: "greet", description: "Greets", inputSchema: { type: "object" } }] });
      break;
    case "tools/call":
      answer(id, { content: [{ type: "text", text: `${process.env.GREETING} to ${process.argv.slice(2).join(" and ")}; key ${process.env.API_KEY ? "there" : "absent"}` }] });
      break;
    default:
      answer(id, {});
  }
});
