import { describe, expect, it } from "vitest";
import { encoded, isName, oddity } from "./value";

describe("a value that is typed", () => {
  it.each(["plain", "ünï 漢字 🙂", 'q"\\&<%', " spaces ", "\u202e"])("%j arrives byte for byte", (value) => {
    const bytes = Uint8Array.from(atob(encoded(value)), (c) => c.charCodeAt(0));
    expect(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)).toBe(value);
  });

  it.each([
    ["abc def", undefined],
    ["", undefined],
    ["abc ", "spaces"],
    ["\tabc", "spaces"],
    ["\u00a0abc", "spaces"],
    ["a\u200bb", "unseen"],
    ["a\u202eb", "unseen"],
  ])("%j is %s", (value, want) => {
    expect(oddity(value)).toBe(want);
  });

  it.each([
    ["NOTES_TOKEN", true],
    ["a.b-c_1", true],
    ["", false],
    ["two words", false],
    ["../x", false],
    ["x".repeat(129), false],
  ])("the name %j is taken: %s", (name, want) => {
    expect(isName(name)).toBe(want);
  });
});
