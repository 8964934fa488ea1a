import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { about, action, outcome, way, who } from "./said";

const record = (over: Partial<Schemas["AuditRecord"]>): Schemas["AuditRecord"] => ({
  seq: 1,
  at: "2026-01-01T00:00:00Z",
  actor: "sam",
  via: "cli",
  action: "call",
  plugin: "",
  version: "",
  binding: "",
  target: "",
  result: "ok",
  reason: "",
  identity: "",
  decision: "",
  client: "",
  count: 1,
  durationMs: 0,
  prev: "",
  hash: "",
  ...over,
});

describe("a record", () => {
  it("of a call is about the tool, by the agent", () => {
    const call = record({ plugin: "notes", binding: "main", target: "read", client: "claude", via: "mcp" });
    expect(about(call)).toBe("notes/main · read");
    expect(who(call)).toBe("claude");
  });
  it("of an answer to an agent's call is by who answered", () => {
    expect(who(record({ action: "allow", client: "claude", via: "browser" }))).toBe("sam (a browser)");
    expect(who(record({ action: "start", actor: "sallyport", via: "sallyport" }))).toBe("Sallyport");
  });
  it("shows its result in a word, and one that is not known as it is", () => {
    expect(outcome("ok")).toBe("done");
    expect(way("mcp")).toBe("its connection");
    expect(way("pigeon")).toBe("pigeon");
  });
  it("of a new agent is about the agent, by the person", () => {
    const add = record({ action: "client.add", client: "claude" });
    expect(about(add)).toBe("claude");
    expect(who(add)).toBe("sam (the command line)");
  });
  it("of an action that is not known yet keeps its name", () => {
    expect(action({ action: "client.add", reason: "" })).toBe("Agent added");
    expect(action({ action: "teleport", reason: "" })).toBe("teleport");
  });
  it("of an agent that sees more is about both, by the person", () => {
    const grant = record({ action: "client.grant", client: "claude", plugin: "notes", binding: "main" });
    expect(about(grant)).toBe("claude · notes/main");
    expect(who(grant)).toBe("sam (the command line)");
  });
  it("of a connection that was undone says so", () => {
    expect(action({ action: "connect", reason: "undo" })).toBe("Program disconnected");
  });
});
