/** What a tool takes, as fields of a form. A schema is the plugin's text: it is bounded, never run (a pattern is
 * shown and not matched), and where it says more than a form can, there is a place for JSON instead. */

export type Why = "any" | "several" | "deep" | "large" | "elsewhere" | "open";
export type Kind =
  "text" | "number" | "integer" | "boolean" | "choice" | "fixed" | "object" | "list" | "json";

export type Field = {
  kind: Kind;
  name: string; // of the member; "" at the root and in a list
  title: string;
  description: string;
  required: boolean;
  nullable: boolean;
  fallback?: string; // JSON of the default: shown, never sent by itself
  long?: boolean; // a text of several lines
  hints: Hint[];
  limits: Limits;
  options: string[]; // JSON texts of an enum or a const
  fields: Field[]; // of an object
  item?: Field; // of a list
  why?: Why; // for json
};

export type Hint = { what: "format" | "pattern"; text: string };

export type Limits = {
  min?: number;
  max?: number;
  above?: number;
  below?: number;
  shortest?: number;
  longest?: number;
  fewest?: number;
  most?: number;
};

/** How much of a schema becomes a form. */
export const deepest = 5;
export const mostFields = 150;
const mostOptions = 500;
const mostRefs = 20;

type Schema = Record<string, unknown>;
type Room = { left: number; root: unknown };

export function fieldsOf(schema: unknown): Field {
  return fieldOf(schema, { name: "", required: true }, 0, { left: mostFields, root: schema });
}

type Place = { name: string; required: boolean };

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const own = (schema: Schema, name: string): unknown =>
  Object.hasOwn(schema, name) ? schema[name] : undefined;
const str = (value: unknown): string => (typeof value === "string" ? value : "");
const num = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** Words of a schema that a form does not speak. */
const beyond = [
  "oneOf",
  "anyOf",
  "allOf",
  "not",
  "if",
  "patternProperties",
  "dependentSchemas",
  "prefixItems",
];

function fieldOf(given: unknown, place: Place, depth: number, room: Room): Field {
  room.left--;
  const resolved = follow(given, room.root);
  if (!isObject(resolved.schema)) return blank(place, {}, resolved.why ?? "any");
  const { schema, nullable } = withoutNull(resolved.schema, room.root);
  const field: Field = { ...blank(place, schema, "any"), nullable };
  if (resolved.why) return { ...field, why: resolved.why };
  if (depth > deepest) return { ...field, why: "deep" };
  if (room.left < 0) return { ...field, why: "large" };
  if (own(schema, "const") !== undefined) {
    return { ...field, kind: "fixed", options: [JSON.stringify(own(schema, "const"))] };
  }
  const options = own(schema, "enum");
  if (Array.isArray(options)) {
    if (options.length > mostOptions) return { ...field, why: "large" };
    return { ...field, kind: "choice", options: options.map((one) => JSON.stringify(one)) };
  }
  if (beyond.some((word) => own(schema, word) !== undefined)) return { ...field, why: "several" };
  return typed(field, schema, depth, room);
}

function typed(field: Field, schema: Schema, depth: number, room: Room): Field {
  const type = own(schema, "type") ?? (isObject(own(schema, "properties")) ? "object" : undefined);
  switch (type) {
    case "string":
      return { ...field, kind: "text", long: (field.limits.longest ?? 0) > 200 };
    case "number":
    case "integer":
    case "boolean":
      return { ...field, kind: type as Kind };
    case "null":
      return { ...field, kind: "fixed", options: ["null"] };
    case "array": {
      const items = own(schema, "items");
      if (!isObject(items)) return { ...field, why: "any" };
      return { ...field, kind: "list", item: fieldOf(items, { name: "", required: true }, depth + 1, room) };
    }
    case "object":
      return objectOf(field, schema, depth, room);
  }
  return { ...field, why: Array.isArray(type) ? "several" : "any" };
}

function objectOf(field: Field, schema: Schema, depth: number, room: Room): Field {
  const properties = own(schema, "properties");
  const members = isObject(properties) ? Object.entries(properties) : [];
  const required = own(schema, "required");
  const needed = new Set(Array.isArray(required) ? required.filter((r) => typeof r === "string") : []);
  const more = own(schema, "additionalProperties");
  if (members.length === 0 && depth > 0 && more !== false) return { ...field, why: "open" };
  if (members.length > room.left) return { ...field, why: "large" };
  // What must be there and is nowhere described can only be written as JSON.
  if ([...needed].some((name) => !members.some(([known]) => known === name)))
    return { ...field, why: "open" };
  const fields = members.map(([name, member]) =>
    fieldOf(member, { name, required: needed.has(name) }, depth + 1, room),
  );
  fields.sort((a, b) => Number(b.required) - Number(a.required));
  return { ...field, kind: "object", fields };
}

function blank(place: Place, schema: Schema, why: Why): Field {
  const hints: Hint[] = [];
  for (const what of ["format", "pattern"] as const) {
    const said = str(own(schema, what));
    if (said !== "") hints.push({ what, text: said });
  }
  const fallback = own(schema, "default");
  return {
    kind: "json",
    name: place.name,
    title: str(own(schema, "title")) || place.name,
    description: str(own(schema, "description")),
    required: place.required,
    nullable: false,
    ...(fallback === undefined ? {} : { fallback: JSON.stringify(fallback) }),
    hints,
    limits: limitsOf(schema),
    options: [],
    fields: [],
    why,
  };
}

function limitsOf(schema: Schema): Limits {
  const of = (name: string): number | undefined => num(own(schema, name));
  const all: Limits = {
    min: of("minimum"),
    max: of("maximum"),
    above: of("exclusiveMinimum"),
    below: of("exclusiveMaximum"),
    shortest: of("minLength"),
    longest: of("maxLength"),
    fewest: of("minItems"),
    most: of("maxItems"),
  };
  return Object.fromEntries(Object.entries(all).filter(([, limit]) => limit !== undefined));
}

/** Follows references within the schema. One that leads elsewhere, nowhere or in a circle is followed no further. */
function follow(given: unknown, root: unknown): { schema: unknown; why?: Why } {
  let schema = given;
  for (let i = 0; i < mostRefs; i++) {
    const ref = isObject(schema) ? own(schema, "$ref") : undefined;
    if (typeof ref !== "string") return { schema };
    const target = pointed(root, ref);
    if (target === undefined) return { schema, why: "elsewhere" };
    // What stands beside the reference (a title, a default) goes before what it leads to.
    const { $ref: _, ...beside } = schema as Schema;
    schema = isObject(target) ? { ...target, ...beside } : target;
  }
  return { schema, why: "deep" };
}

function pointed(root: unknown, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const step of ref.slice(2).split("/")) {
    const name = unescaped(step);
    if (Array.isArray(at)) at = /^\d+$/.test(name) ? at[Number(name)] : undefined;
    else at = isObject(at) ? own(at, name) : undefined;
  }
  return at;
}

function unescaped(step: string): string {
  let plain = step;
  try {
    plain = decodeURIComponent(step);
  } catch {
    // A percent sign that encodes nothing stands for itself.
  }
  return plain.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Takes "or null" out of a schema, where that leaves one thing. */
function withoutNull(schema: Schema, root: unknown): { schema: Schema; nullable: boolean } {
  const type = own(schema, "type");
  if (Array.isArray(type) && type.includes("null") && type.length === 2) {
    const rest = type.find((one) => one !== "null");
    const options = own(schema, "enum");
    return {
      schema: {
        ...schema,
        type: rest,
        ...(Array.isArray(options) ? { enum: options.filter((one) => one !== null) } : {}),
      },
      nullable: true,
    };
  }
  for (const word of ["anyOf", "oneOf"]) {
    const ways = own(schema, word);
    if (!Array.isArray(ways) || ways.length !== 2) continue;
    const isNull = (way: unknown): boolean => isObject(way) && own(way, "type") === "null";
    const rest = follow(
      ways.find((way) => !isNull(way)),
      root,
    );
    if (!ways.some(isNull) || !isObject(rest.schema) || rest.why) continue;
    const { [word]: _, ...beside } = schema;
    return { schema: { ...rest.schema, ...beside }, nullable: true };
  }
  return { schema, nullable: false };
}
