import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { steps } from "./steps";

const connector = (state: string, reason = "") => ({ state, reason }) as Schemas["Connector"];
const call = (via: string) => ({ action: "call", via }) as Schemas["AuditRecord"];
const done = (...given: Parameters<typeof steps>) => steps(...given).map((s) => s.done);

it("begins with three steps of which none is done", () => {
  expect(done([connector("approval_required", "never-approved")], 0, [])).toEqual([false, false, false]);
  expect(done([], 0, [])).toEqual([false, false, false]);
});

it("takes a plugin for allowed that was allowed once, whatever became of it", () => {
  for (const state of ["enabled", "disabled", "blocked", "parked"])
    expect(done([connector(state)], 0, [])).toEqual([true, false, false]);
  expect(done([connector("approval_required", "artifact-changed")], 0, [])).toEqual([true, false, false]);
});

it("does not take one for allowed whose tools nobody chose, or that was denied", () => {
  for (const state of ["tools_required", "denied", "pending"])
    expect(done([connector(state)], 1, [])).toEqual([false, true, false]);
});

it("ends with the first call of an agent, not with a person who tries a tool", () => {
  expect(done([connector("enabled")], 1, [call("browser")])).toEqual([true, true, false]);
  expect(steps([connector("enabled")], 1, [call("browser"), call("mcp")])).toEqual([]);
});
