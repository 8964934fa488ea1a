import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { diffLines, standing } from "./programs";

const program = (files: number, ...states: string[]): Schemas["Program"] => ({
  name: "cursor",
  title: "Cursor",
  files: Array.from({ length: files }, () => ({ file: "~/.cursor/mcp.json", scope: "user", servers: 0 })),
  connections: states.map((state) => ({ file: "~/.cursor/mcp.json", at: "2026-01-01T00:00:00Z", state })),
});

describe("a program", () => {
  it.each([
    ["is absent where no file of it was found", program(0), "absent"],
    ["is found", program(1), "found"],
    ["is connected", program(1, "unchanged"), "connected"],
    ["is connected also after something else in the file changed", program(1, "file-edited"), "connected"],
    ["is not to be relied on after its entry changed", program(1, "entry-edited"), "changed"],
    ["nor where one of two entries is missing", program(1, "unchanged", "entry-missing"), "changed"],
  ])("%s", (_, one, want) => {
    expect(standing(one)).toBe(want);
  });
});

describe("a difference", () => {
  it("is lines without its header, with a gap between hunks", () => {
    const diff =
      "--- ~/a\n+++ ~/a\n@@ -1,2 +1,2 @@\n {\n-  old\n+--- new\n@@ -9 +9 @@\n }\n\\ No newline at end of file\n";
    expect(diffLines(diff)).toEqual([
      { kind: "same", text: "{" },
      { kind: "removed", text: "  old" },
      { kind: "added", text: "--- new" },
      { kind: "gap", text: "" },
      { kind: "same", text: "}" },
      { kind: "same", text: "\\ No newline at end of file" },
    ]);
  });
  it("is nothing where nothing would be written", () => {
    expect(diffLines("")).toEqual([]);
  });
});
