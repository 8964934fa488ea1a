import { expect, it } from "vitest";
import { deepest, fieldsOf, mostFields, type Field } from "./fields";

const inObject = (schema: unknown, more: Record<string, unknown> = {}): Field =>
  fieldsOf({ type: "object", properties: { x: schema }, ...more }).fields[0]!;

it.each([
  [{ type: "string" }, "text"],
  [{ type: "number" }, "number"],
  [{ type: "integer" }, "integer"],
  [{ type: "boolean" }, "boolean"],
  [{ type: "null" }, "fixed"],
  [{ enum: ["a", 1, null] }, "choice"],
  [{ const: { a: 1 } }, "fixed"],
  [{ type: "array", items: { type: "string" } }, "list"],
  [{ type: "object", properties: { y: { type: "string" } } }, "object"],
  [{ properties: { y: {} } }, "object"],
])("%j becomes a field of the kind %s", (schema, kind) => expect(inObject(schema).kind).toBe(kind));

it.each([
  [{}, "any"],
  [true, "any"],
  ["text", "any"],
  [{ type: "array" }, "any"],
  [{ type: "object" }, "open"],
  [{ type: "object", required: ["z"], properties: { y: {} } }, "open"],
  [{ type: ["string", "number"] }, "several"],
  [{ oneOf: [{ type: "string" }, { type: "number" }] }, "several"],
  [{ anyOf: [{ type: "string" }, { type: "number" }, { type: "null" }] }, "several"],
  [{ type: "string", allOf: [{ minLength: 1 }] }, "several"],
  [{ type: "object", properties: { a: {} }, if: {} }, "several"],
  [{ $ref: "https://elsewhere.example/schema" }, "elsewhere"],
  [{ $ref: "#/$defs/missing" }, "elsewhere"],
  [{ $ref: "#/properties/x" }, "deep"],
])("%j is written as JSON: %s", (schema, why) =>
  expect(inObject(schema)).toMatchObject({ kind: "json", why }),
);

it("puts what is required first, and says the rest in the order of the schema", () => {
  const root = fieldsOf({ type: "object", required: ["b"], properties: { a: {}, b: {}, c: {} } });
  expect(root.fields.map((f) => [f.name, f.required])).toEqual([
    ["b", true],
    ["a", false],
    ["c", false],
  ]);
});

it("keeps a default to be shown, and limits and hints", () => {
  expect(
    inObject({ type: "integer", default: 3, minimum: 1, exclusiveMaximum: 9, title: "How many" }),
  ).toMatchObject({ fallback: "3", limits: { min: 1, below: 9 }, title: "How many" });
  expect(inObject({ type: "string", pattern: "(a+)+$", format: "email" }).hints).toHaveLength(2);
});

it("takes a type or null as one that may be null", () => {
  expect(inObject({ type: ["string", "null"] })).toMatchObject({ kind: "text", nullable: true });
  expect(inObject({ anyOf: [{ type: "integer" }, { type: "null" }], default: null })).toMatchObject({
    kind: "integer",
    nullable: true,
    fallback: "null",
  });
  expect(inObject({ type: ["string", "null"], enum: ["a", null] })).toMatchObject({
    options: ['"a"'],
    nullable: true,
  });
});

it("follows references within the schema, with what stands beside them", () => {
  const root = fieldsOf({
    type: "object",
    properties: { a: { $ref: "#/$defs/a~1b%25", title: "Here" } },
    $defs: { "a/b%": { type: "string", title: "There" } },
  });
  expect(root.fields[0]).toMatchObject({ kind: "text", title: "Here" });
});

it("ends where a schema holds itself", () => {
  let field: Field | undefined = fieldsOf({
    type: "object",
    properties: { left: { $ref: "#" }, right: { $ref: "#" } },
  });
  let depth = 0;
  let count = 0;
  const all = [field];
  while (all.length > 0) {
    count++;
    all.push(...all.pop()!.fields);
  }
  for (; field?.kind === "object"; field = field.fields[0]) depth++;
  expect(field).toMatchObject({ kind: "json", why: "deep" });
  expect(depth).toBe(deepest + 1);
  expect(count).toBeLessThan(2 * mostFields);
});

it("leaves what is huge to JSON", () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, { type: "string" }]));
  expect(fieldsOf({ type: "object", properties: many })).toMatchObject({ kind: "json", why: "large" });
  expect(inObject({ enum: Array.from({ length: 10_000 }, (_, i) => i) })).toMatchObject({ why: "large" });
});

it("takes names that are words of JavaScript as names", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"integer"}}}',
  ) as unknown;
  expect(fieldsOf(schema).fields.map((f) => [f.name, f.kind])).toEqual([
    ["__proto__", "text"],
    ["constructor", "integer"],
  ]);
  expect(inObject({ $ref: "#/constructor" })).toMatchObject({ why: "elsewhere" });
});

it.each([undefined, null, 7, [], "x", true])("is JSON where the schema is %j", (schema) =>
  expect(fieldsOf(schema).kind).toBe("json"),
);
