import { expect, it } from "vitest";
import { isNumber, member, NotJSON, parse, write } from "./json";

it("keeps every digit, the order and what is there twice", () => {
  const text =
    '{"b":9007199254740993,"a":1e400,"a":-0.10,"s":"\\u0000\\ud800 \\"q\\"","n":null,"l":[true,[],{}]}';
  expect(write(parse(text))).toBe(text);
});

it("writes it indented, and reads that as the same", () => {
  const text = '{"a":[1,{"b":"c"}],"d":{}}';
  expect(write(parse(write(parse(text), "  ")))).toBe(text);
  expect(write(parse(text), "  ")).toContain('\n  "a": [\n    1,');
});

it.each([
  ["", 1, 1],
  ['{"a":}', 1, 6],
  ['{\n  "a": 01}', 2, 9],
  ["[1,]", 1, 4],
  ["{'a':1}", 1, 2],
  ["1 2", 1, 3],
  ['"\n"', 1, 1],
  ["nul", 1, 1],
])("says where %j stops being JSON", (text, line, column) => {
  try {
    parse(text);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(NotJSON);
    expect(error).toMatchObject({ line, column });
  }
});

it("does not follow a text deeper than a screen shows", () => {
  expect(() => parse("[".repeat(100_000))).toThrow(NotJSON);
});

it("finds a member by its name, whatever the name", () => {
  const node = parse('{"__proto__":1,"x":2,"x":3}');
  expect(member(node, "__proto__")).toEqual({ kind: "number", text: "1" });
  expect(member(node, "x")).toEqual({ kind: "number", text: "3" });
  expect(member(node, "toString")).toBeUndefined();
});

it.each(["1", "-1.5e+3", "0", "123456789012345678901234567890"])("%s is a number", (text) =>
  expect(isNumber(text)).toBe(true),
);
it.each(["", "01", "+1", "1.", ".5", "1 ", "0x1", "NaN", "١"])("%j is none", (text) =>
  expect(isNumber(text)).toBe(false),
);
