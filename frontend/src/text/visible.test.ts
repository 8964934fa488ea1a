import { describe, expect, it } from "vitest";
import { parts, plain } from "./visible";

const marks = (value: string) =>
  parts(value)
    .filter((p) => p.mark)
    .map((p) => p.text);

describe("text from outside", () => {
  it("keeps lines and tabs where it has more than one line, and nothing else", () => {
    expect(parts("a\n\tb\u202e", true).filter((p) => p.mark)).toEqual([{ text: "U+202E", mark: true }]);
  });

  it.each([
    ["plain ünï 漢字 🙂", []],
    ["a\u202eb", ["U+202E"]],
    ["zero\u200bwidth", ["U+200B"]],
    ["esc\u001b[2J", ["U+001B"]],
    ["tag\u{E0041}", ["U+E0041"]],
    ["line\u2028end\n", ["U+2028", "U+000A"]],
    ["soft\u00adhyphen\u00a0space", ["U+00AD", "U+00A0"]],
  ])("%j shows %j", (value, want) => {
    expect(marks(value)).toEqual(want);
    expect(
      parts(value)
        .filter((p) => !p.mark)
        .map((p) => p.text)
        .join(""),
    ).not.toMatch(/[\u202e\u200b\u001b]/u);
  });
});

it("is bare text where there is no place for more", () => {
  expect(plain("a\u202eb")).toBe("aU+202Eb");
  expect(plain("abcdef", 3)).toBe("abc…");
});
