// How a program uses the API by the generated types: it lists, asks, answers,
// calls a tool and reads the audit. A test runs it against a real sidecar, with
//   node example.mjs URL PLUGIN/SERVER TOOL    (SALLYPORT_TOKEN: the operator's)
// Nothing here is typed by hand: tsc checks it against schema.d.ts.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";

/** @typedef {import("./schema.d.ts").paths} paths */

const [url = "", id = "", tool = ""] = process.argv.slice(2);
const [plugin = "", server = ""] = id.split("/");
const connector = { params: { path: { plugin, server } } };

/** @type {ReturnType<typeof createClient<paths>>} */
const api = createClient({
  baseUrl: url,
  headers: { Authorization: `Bearer ${process.env["SALLYPORT_TOKEN"]}` },
});

const listed = await api.GET("/v1/plugins");
assert.ok(listed.data, `list: ${listed.error?.code}`);
const before = listed.data.connectors.find((one) => one.id === id);
assert.equal(before?.state, "approval_required");

const early = await api.POST("/v1/plugins/{plugin}/{server}/call", { ...connector, body: { tool, args: {} } });
assert.equal(early.error?.code, "never-approved");
assert.equal(early.error.details.path, undefined);

const asked = await api.POST("/v1/plugins/{plugin}/{server}/ask", connector);
assert.ok(asked.data, `ask: ${asked.error?.code}`);
assert.equal(asked.data.stage, "run");

const ran = await api.POST("/v1/decisions/{id}/answer", {
  params: { path: { id: asked.data.id } },
  body: { answer: "allow" },
});
assert.ok(ran.data, `answer: ${ran.error?.code} ${ran.error?.message}`);
assert.equal(ran.data.stage, "tools");
assert.ok(ran.data.tools?.some((offered) => offered.name === tool));

const chosen = await api.POST("/v1/decisions/{id}/answer", {
  params: { path: { id: ran.data.id } },
  body: { answer: "allow", tools: [tool] },
});
assert.ok(chosen.data, `tools: ${chosen.error?.code} ${chosen.error?.message}`);
assert.deepEqual(chosen.data.chosen, [tool]);

const called = await api.POST("/v1/plugins/{plugin}/{server}/call", { ...connector, body: { tool, args: { text: "grüß" } } });
assert.ok(called.data, `call: ${called.error?.code} ${called.error?.message}`);

const detail = await api.GET("/v1/plugins/{plugin}/{server}", connector);
assert.equal(detail.data?.state, "enabled");
assert.deepEqual(detail.data.approved?.tools, [tool]);

const audit = await api.GET("/v1/plugins/audit", { params: { query: { plugin, action: "call", limit: "10" } } });
assert.equal(audit.data?.records[0]?.target, tool);
assert.equal(audit.data.records[0].result, "ok");

// A decision is answered once.
const again = await api.POST("/v1/decisions/{id}/answer", {
  params: { path: { id: chosen.data.id } },
  body: { answer: "deny" },
});
assert.ok(again.error, "a closed decision was answered");

console.log(JSON.stringify({ ok: true, result: called.data.result, refused: again.error.code }));
