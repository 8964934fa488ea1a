// An MCP server for notes, over stdio, in plain Node without packages.
//
// One JSON-RPC message a line on stdin and stdout (MCP 2025-11-25); words for
// people go to stderr; the end of stdin ends the process. The notes are one JSON
// file in PLUGIN_DATA, replaced as a whole so that a crash leaves old or new.

import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"];
const FOLDER = process.env.PLUGIN_DATA;

if (!FOLDER) {
  process.stderr.write("notes: PLUGIN_DATA is not set, so there is no place for notes\n");
  process.exit(1);
}
const FILE = join(FOLDER, "notes.json");

// --- the notes -------------------------------------------------------------

function load() {
  if (!existsSync(FILE)) return [];
  return JSON.parse(readFileSync(FILE, "utf8")).notes;
}

function save(notes) {
  mkdirSync(FOLDER, { recursive: true, mode: 0o700 });
  const staged = `${FILE}.${process.pid}.new`;
  writeFileSync(staged, JSON.stringify({ version: 1, notes }, null, 2) + "\n", { mode: 0o600 });
  renameSync(staged, FILE);
}

// --- the tools -------------------------------------------------------------

const note = {
  type: "object",
  properties: {
    id: { type: "string" },
    text: { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    created: { type: "string", format: "date-time" },
  },
  required: ["id", "text", "tags", "created"],
};
const noteList = {
  type: "object",
  properties: { notes: { type: "array", items: note }, total: { type: "integer" } },
  required: ["notes", "total"],
};
const limit = { type: "integer", minimum: 1, maximum: 100, default: 20, description: "How many notes at most" };

const tools = {
  list_notes: {
    title: "List notes",
    description: "Lists the notes, newest first.",
    input: { limit },
    output: noteList,
    annotations: { readOnlyHint: true, openWorldHint: false },
    run({ limit = 20 }) {
      const notes = load().reverse();
      return { notes: notes.slice(0, limit), total: notes.length };
    },
  },
  search_notes: {
    title: "Search notes",
    description: "Finds notes whose text or tags contain the query, in any case, newest first.",
    input: { query: { type: "string", minLength: 1, maxLength: 200, description: "Text to look for" }, limit },
    required: ["query"],
    output: noteList,
    annotations: { readOnlyHint: true, openWorldHint: false },
    run({ query, limit = 20 }, progress) {
      const wanted = query.toLowerCase();
      const notes = load().reverse();
      const step = Math.max(1, Math.ceil(notes.length / 10));
      const hits = notes.filter((n, i) => {
        if (i % step === 0) progress(i, notes.length);
        return n.text.toLowerCase().includes(wanted) || n.tags.some((t) => t.toLowerCase().includes(wanted));
      });
      progress(notes.length, notes.length);
      return { notes: hits.slice(0, limit), total: hits.length };
    },
  },
  add_note: {
    title: "Add a note",
    description: "Adds a note. The text is kept as it is, in a plain file: no passwords.",
    input: {
      text: { type: "string", minLength: 1, maxLength: 10000, description: "The note" },
      tags: { type: "array", maxItems: 10, items: { type: "string", minLength: 1, maxLength: 50 }, default: [] },
    },
    required: ["text"],
    output: note,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    run({ text, tags = [] }) {
      const added = { id: randomUUID(), text, tags, created: new Date().toISOString() };
      save([...load(), added]);
      return added;
    },
  },
  delete_note: {
    title: "Delete a note",
    description: "Deletes one note for good, by its id.",
    input: { id: { type: "string", minLength: 1, maxLength: 100, description: "The note's id, from list_notes" } },
    required: ["id"],
    output: { type: "object", properties: { deleted: note }, required: ["deleted"] },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    run({ id }) {
      const notes = load();
      const deleted = notes.find((n) => n.id === id);
      if (!deleted) throw new Error(`there is no note ${id}`);
      save(notes.filter((n) => n !== deleted));
      return { deleted };
    },
  },
};

const inputSchema = ({ input, required = [] }) =>
  ({ type: "object", properties: input, required, additionalProperties: false });

// mismatch returns what is wrong with a value by the part of JSON Schema used above.
function mismatch(schema, value, name) {
  const { type } = schema;
  if (type === "object") {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return `${name} is not an object`;
    const missing = schema.required.find((key) => value[key] === undefined);
    if (missing) return `${missing} is missing`;
    for (const [key, item] of Object.entries(value)) {
      if (!Object.hasOwn(schema.properties, key)) return `${key} is unknown`;
      const wrong = mismatch(schema.properties[key], item, key);
      if (wrong) return wrong;
    }
  } else if (type === "array") {
    if (!Array.isArray(value) || value.length > schema.maxItems) return `${name} is not a list of at most ${schema.maxItems}`;
    return value.map((item) => mismatch(schema.items, item, name)).find(Boolean);
  } else if (type === "string") {
    if (typeof value !== "string" || value.length < schema.minLength || value.length > schema.maxLength)
      return `${name} is not text of ${schema.minLength} to ${schema.maxLength} characters`;
  } else if (!Number.isInteger(value) || value < schema.minimum || value > schema.maximum) {
    return `${name} is not a whole number from ${schema.minimum} to ${schema.maximum}`;
  }
}

// --- the protocol ----------------------------------------------------------

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const failure = (code, message) => Object.assign(new Error(message), { code });

const methods = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: VERSIONS.includes(protocolVersion) ? protocolVersion : VERSIONS[0],
    capabilities: { tools: {} },
    serverInfo: { name: "notes", title: "Notes", version: "1.0.0" },
    instructions: "Search before adding. Ask before deleting. Never store passwords.",
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: Object.entries(tools).map(([name, tool]) => ({
      name, title: tool.title, description: tool.description,
      inputSchema: inputSchema(tool), outputSchema: tool.output, annotations: tool.annotations,
    })),
  }),
  "tools/call": ({ name, arguments: args = {}, _meta }) => {
    if (!Object.hasOwn(tools, name)) throw failure(-32602, "there is no such tool");
    const token = _meta?.progressToken;
    const progress = (done, total) => {
      if (token !== undefined)
        send({ method: "notifications/progress", params: { progressToken: token, progress: done, total } });
    };
    const text = (value, isError) => ({ content: [{ type: "text", text: value }], isError });
    const wrong = mismatch(inputSchema(tools[name]), args, "arguments");
    if (wrong) return text(wrong, true);
    try {
      const result = tools[name].run(args, progress);
      return { ...text(JSON.stringify(result), false), structuredContent: result };
    } catch (error) {
      return text(error.message, true);
    }
  },
};

function answer(line) {
  let request;
  try {
    request = JSON.parse(line);
  } catch {
    return send({ id: null, error: { code: -32700, message: "not JSON" } });
  }
  const { id, method, params = {} } = request ?? {};
  if (typeof method !== "string" || id === undefined) return; // notifications and answers
  try {
    if (!Object.hasOwn(methods, method)) throw failure(-32601, "there is no such method");
    send({ id, result: methods[method](params ?? {}) });
  } catch (error) {
    send({ id, error: { code: error.code ?? -32603, message: error.message } });
  }
}

createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (line) => {
  if (line.trim()) answer(line);
});
