import { expect, it } from "vitest";
import { copied, found } from "./log";

it("finds lines in any case, and all of them without a word", () => {
  expect(found(["One", "two", "ONE more"], "one ")).toEqual(["One", "ONE more"]);
  expect(found(["One", "two"], " ")).toEqual(["One", "two"]);
});

it("copies nothing that steers a terminal", () => {
  expect(copied(["\u001b[2Jred\t1", "a\u202eb"])).toBe("[U+001B][2Jred\t1\na[U+202E]b");
});
