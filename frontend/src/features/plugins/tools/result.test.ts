import { expect, it } from "vitest";
import { parse } from "../../../text/json";
import { readResult, sizeOf } from "./result";
import { bodyOf } from "./running.svelte";

it("reads texts, and tells of pictures and sounds by type and size alone", () => {
  const read = readResult(
    parse(
      `{"content":[{"type":"text","text":"hi"},{"type":"image","data":"aGk=","mimeType":"image/png"},
      {"type":"resource_link","uri":"x:y","name":"n"},{"type":"resource","resource":{"uri":"a:b","text":"t"}},
      {"type":"new"},{"type":"text"}],"structuredContent":{"n":9007199254740993},"isError":false}`,
    ),
  );
  expect(read.isError).toBe(false);
  expect(read.parts.map((part) => part.kind)).toEqual([
    "text",
    "media",
    "link",
    "resource",
    "other",
    "other",
  ]);
  expect(read.parts[1]).toMatchObject({ what: "image", mime: "image/png", bytes: 2 });
  expect(read.structured).toMatchObject({ members: [{ value: { text: "9007199254740993" } }] });
});

it("tells what the tool says failed", () => {
  expect(readResult(parse('{"content":[],"isError":true}')).isError).toBe(true);
  expect(readResult(parse('{"content":[],"isError":"true"}')).isError).toBe(false);
});

it("shows whole what is no result of a tool", () => {
  expect(readResult(parse('{"tools":[]}')).odd).toBeDefined();
  expect(readResult(parse('"text"')).odd).toBeDefined();
});

it.each([
  ["", 0],
  ["aA==", 1],
  ["aGk=", 2],
  ["aGkh", 3],
])("%j stands for %i bytes", (text, bytes) => expect(sizeOf(text)).toBe(bytes));

it("puts the arguments into the request as they were written", () => {
  expect(bodyOf('a"b', '{"n":9007199254740993,"f":1.50}', "c")).toBe(
    '{"tool":"a\\"b","args":{"n":9007199254740993,"f":1.50},"call":"c"}',
  );
});
