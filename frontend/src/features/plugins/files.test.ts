import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { copies, listed, sums } from "./files";

type Entry = Schemas["ApprovalsTreeEntry"];
const file = (path: string, change?: string): Entry =>
  ({ path, kind: "file", size: 10, ...(change ? { change } : {}) }) as Entry;
const all: Entry[] = [
  { path: "bin", kind: "folder", size: 0 } as Entry,
  file("bin/Tool"),
  file("new.txt", "added"),
  file("old.txt", "removed"),
  file("same.txt"),
];

it.each([
  ["all files, no folders", "", false, ["bin/Tool", "new.txt", "old.txt", "same.txt"]],
  ["a search in any case", " tool", false, ["bin/Tool"]],
  ["what changed", "", true, ["new.txt", "old.txt"]],
  ["nothing", "absent", true, []],
])("lists %s", (_, search, changed, want) => {
  expect(listed(all, search, changed).map((e) => e.path)).toEqual(want);
});

it("counts what is there, and what changed", () => {
  expect(sums(all)).toEqual({ files: 3, bytes: 30, changed: 2 });
});

it.each([
  ["removed", true, ["approved"]],
  ["modified", true, ["now", "approved"]],
  ["added", true, ["now"]],
  ["", true, ["approved"]],
  ["", false, ["now"]],
  ["mode-changed", true, ["approved"]],
])("of one that is %j, approved %j, there is %j", (change, approved, want) => {
  expect(copies(file("a", change), approved)).toEqual(want);
});
