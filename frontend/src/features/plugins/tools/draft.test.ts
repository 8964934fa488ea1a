import { expect, it } from "vitest";
import { parse } from "../../../text/json";
import { build, empty, fill, type Draft } from "./draft";
import { fieldsOf, type Field } from "./fields";

const root = (properties: Record<string, unknown>, required: string[] = []): Field =>
  fieldsOf({ type: "object", properties, required });

function filled(field: Field, texts: Record<string, string>): Draft {
  const draft = empty(field);
  for (const [at, member] of field.fields.entries()) draft.members[at]!.text = texts[member.name] ?? "";
  return draft;
}

it("sends what was filled in and nothing else, defaults neither", () => {
  const field = root({ a: { type: "string" }, b: { type: "integer", default: 3 }, c: { type: "boolean" } });
  expect(build(field, empty(field)).text).toBe("{}");
  expect(build(field, filled(field, { a: ' "q" ', c: "false" })).text).toBe('{"a":" \\"q\\" ","c":false}');
});

it("sends a number as it was typed", () => {
  const field = root({ i: { type: "integer" }, n: { type: "number" } });
  expect(build(field, filled(field, { i: "9007199254740993", n: "1.10e2" })).text).toBe(
    '{"i":9007199254740993,"n":1.10e2}',
  );
});

it.each([
  [{ type: "integer" }, "1.5", { what: "integer" }],
  [{ type: "integer" }, "1e3", { what: "integer" }],
  [{ type: "number" }, "01", { what: "number" }],
  [{ type: "number" }, "NaN", { what: "number" }],
  [{ type: "number", minimum: 2 }, "1", { what: "min", limit: 2 }],
  [{ type: "number", maximum: 2 }, "3", { what: "max", limit: 2 }],
  [{ type: "number", exclusiveMinimum: 2 }, "2", { what: "above", limit: 2 }],
  [{ type: "number", exclusiveMaximum: 2 }, "2", { what: "below", limit: 2 }],
  [{ type: "string", minLength: 3 }, "😀a", { what: "shortest", limit: 3 }],
  [{ type: "string", maxLength: 1 }, "ab", { what: "longest", limit: 1 }],
  [{}, "{", { what: "json" }],
])("%j is not met by %j", (schema, text, problem) => {
  const field = root({ x: schema });
  expect(build(field, filled(field, { x: text })).problems.get("0")).toEqual(problem);
});

it.each([
  [{ type: "integer" }, { what: "missing" }],
  [{ enum: [1] }, { what: "missing" }],
  [{ type: "boolean" }, { what: "missing" }],
  [{}, { what: "missing" }],
  [{ type: "string" }, undefined],
  [{ const: 7 }, undefined],
  [{ type: "array", items: {} }, undefined],
  [
    { type: "array", items: {}, minItems: 1 },
    { what: "fewest", limit: 1 },
  ],
])("%j that is required and left empty: %j", (schema, problem) => {
  const field = root({ x: schema }, ["x"]);
  expect(build(field, empty(field)).problems.get("0")).toEqual(problem);
});

it("sends a part only once something is in it", () => {
  const field = root({
    who: {
      type: "object",
      required: ["name", "age"],
      properties: { name: { type: "string" }, age: { type: "integer" } },
    },
  });
  expect(build(field, empty(field))).toMatchObject({ text: "{}" });
  const draft = empty(field);
  draft.members[0]!.members[0]!.text = "Ann";
  expect(build(field, draft).problems.get("0.1")).toEqual({ what: "missing" });
  draft.members[0]!.members[1]!.text = "7";
  expect(build(field, draft).text).toBe('{"who":{"name":"Ann","age":7}}');
});

it("sends null where a person says so", () => {
  const field = root({ x: { type: ["string", "null"] } });
  const draft = empty(field);
  draft.members[0]!.isNull = true;
  expect(build(field, draft).text).toBe('{"x":null}');
});

it.each([
  '{"s":"a\\u0000b","n":12345678901234567890,"b":true,"e":"x","l":[1,2],"o":{"p":"q"},"j":{"any":[1]}}',
  '{"n":1}',
  '{"s":null}',
  "{}",
])("JSON goes into the form and comes back: %s", (text) => {
  const field = root({
    s: { type: ["string", "null"] },
    n: { type: "integer" },
    b: { type: "boolean" },
    e: { enum: ["x"] },
    l: { type: "array", items: { type: "integer" } },
    o: { type: "object", properties: { p: { type: "string" } } },
    j: {},
  });
  const draft = fill(field, parse(text));
  expect(draft).toBeDefined();
  expect(build(field, draft!).text).toBe(text);
});

it.each(['{"other":1}', '{"n":"1"}', '{"s":""}', '{"n":1,"n":2}', '{"o":{}}', '{"l":[]}', '{"e":"z"}', "[]"])(
  "what the form has no place for stays JSON: %s",
  (text) => {
    const field = root({
      s: { type: "string" },
      n: { type: "integer" },
      e: { enum: ["x"] },
      l: { type: "array", items: { type: "integer" } },
      o: { type: "object", properties: { p: { type: "string" } } },
    });
    expect(fill(field, parse(text))).toBeUndefined();
  },
);
