// An MCP server that appends every line it reads to the file named by its first
// argument. Its one tool, "wait", is never answered.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tool = { name: "wait", description: "never answers", inputSchema: { type: "object" } };
const answers = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "recorder", version: "1.0.0" },
  },
  "tools/list": { tools: [tool] },
  ping: {},
};

for await (const line of createInterface({ input: process.stdin })) {
  appendFileSync(process.argv[2], line + "\n");
  const message = JSON.parse(line);
  if (message.id !== undefined && answers[message.method]) {
    console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, result: answers[message.method] }));
  }
}
