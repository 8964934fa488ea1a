import { expect, it } from "vitest";
import { asked, fromQuery, toPath } from "./filter";

const none = { plugin: "", action: "", result: "", client: "", within: "" };

it("a filter survives its address", () => {
  const filter = { ...none, client: "Claude & co?", result: "refused", within: "24h" };
  const [, query] = toPath(filter).split("?");
  expect(fromQuery(new URLSearchParams(query))).toEqual(filter);
  expect(toPath(none)).toBe("/audit");
});

it("what is not asked for is not sent, and a length of time becomes a time", () => {
  const now = Date.parse("2026-05-10T12:00:00.500Z");
  expect(asked(none, now)).toEqual({});
  expect(asked({ ...none, plugin: "notes", within: "24h" }, now)).toEqual({
    plugin: "notes",
    since: "2026-05-09T12:00:00Z",
  });
  expect(asked({ ...none, within: "for ever" }, now)).toEqual({});
});
