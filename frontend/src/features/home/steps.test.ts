import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { steps } from "./steps";

const connector = (state: string, reason = "") => ({ state, reason }) as Schemas["Connector"];
const call = (via: string) => ({ action: "call", via }) as Schemas["AuditRecord"];
const sees = (only: string[]) =>
  ({ name: "claude", scope: { all: false, only } }) as unknown as Schemas["Client"];
const done = (...given: Parameters<typeof steps>) => steps(...given).map((s) => s.done);

it("begins with three steps of which none is done", () => {
  expect(done([connector("approval_required", "never-approved")], [], [])).toEqual([false, false, false]);
  expect(done([], [], [])).toEqual([false, false, false]);
});

it("takes a plugin for allowed that was allowed once, whatever became of it", () => {
  for (const state of ["enabled", "disabled", "blocked", "parked"])
    expect(done([connector(state)], [], [])).toEqual([true, false, false]);
  expect(done([connector("approval_required", "artifact-changed")], [], [])).toEqual([true, false, false]);
});

it("does not take one for allowed whose tools nobody chose, or that was denied", () => {
  for (const state of ["tools_required", "denied", "pending"])
    expect(done([connector(state)], [sees(["notes/main"])], [])).toEqual([false, true, false]);
});

it("does not take an agent for connected that sees nothing", () => {
  expect(done([connector("enabled")], [sees([])], [])).toEqual([true, false, false]);
});

it("ends with the first call of an agent, not with a person who tries a tool", () => {
  expect(done([connector("enabled")], [sees(["notes/main"])], [call("browser")])).toEqual([
    true,
    true,
    false,
  ]);
  expect(steps([connector("enabled")], [sees(["notes/main"])], [call("browser"), call("mcp")])).toEqual([]);
});
