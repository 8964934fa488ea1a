/** JSON as it was written. No number or string is decoded and encoded again where it matters: a number keeps its
 * digits, an object its order and its duplicate names. */
export type Node =
  | { kind: "object"; members: { name: string; value: Node }[] }
  | { kind: "array"; items: Node[] }
  | { kind: "string"; value: string }
  | { kind: "number"; text: string }
  | { kind: "literal"; text: "true" | "false" | "null" };

/** Where a text stops being JSON, for the person who wrote it. */
export class NotJSON extends Error {
  readonly line: number;
  readonly column: number;

  constructor(text: string, at: number) {
    super("not JSON");
    this.name = "NotJSON";
    const before = text.slice(0, at).split("\n");
    this.line = before.length;
    this.column = (before.at(-1)?.length ?? 0) + 1;
  }
}

/** Deeper than this nothing is read: it would fill the stack and no screen. */
const deepest = 200;

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const literal = /true|false|null/y;

/** Whether a text is one JSON number. */
export function isNumber(text: string): boolean {
  number.lastIndex = 0;
  return number.exec(text)?.[0].length === text.length && text !== "";
}

export function parse(text: string): Node {
  let at = 0;

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  }
  function next(character: string): boolean {
    take(space);
    if (text[at] !== character) return false;
    at++;
    return true;
  }
  function must(character: string): void {
    if (!next(character)) throw new NotJSON(text, at);
  }
  function value(depth: number): Node {
    take(space);
    if (depth > deepest) throw new NotJSON(text, at);
    switch (text[at]) {
      case "{":
        return object(depth);
      case "[":
        return array(depth);
      case '"':
        return { kind: "string", value: quoted() };
    }
    const word = take(literal);
    if (word !== undefined) return { kind: "literal", text: word as "true" };
    const digits = take(number);
    if (digits === undefined || digits === "") throw new NotJSON(text, at);
    return { kind: "number", text: digits };
  }
  function quoted(): string {
    take(space);
    const found = take(string);
    if (found === undefined) throw new NotJSON(text, at);
    return JSON.parse(found) as string;
  }
  function object(depth: number): Node {
    const members: { name: string; value: Node }[] = [];
    must("{");
    if (next("}")) return { kind: "object", members };
    do {
      const name = quoted();
      must(":");
      members.push({ name, value: value(depth + 1) });
    } while (next(","));
    must("}");
    return { kind: "object", members };
  }
  function array(depth: number): Node {
    const items: Node[] = [];
    must("[");
    if (next("]")) return { kind: "array", items };
    do {
      items.push(value(depth + 1));
    } while (next(","));
    must("]");
    return { kind: "array", items };
  }

  const whole = value(0);
  take(space);
  if (at < text.length) throw new NotJSON(text, at);
  return whole;
}

/** Writes it again, indented where indent is given; numbers as they were. */
export function write(node: Node, indent = "", level = ""): string {
  const inner = level + indent;
  const gap = indent === "" ? "" : "\n" + inner;
  const end = indent === "" ? "" : "\n" + level;
  const colon = indent === "" ? ":" : ": ";
  switch (node.kind) {
    case "object":
      if (node.members.length === 0) return "{}";
      return `{${node.members
        .map((m) => gap + JSON.stringify(m.name) + colon + write(m.value, indent, inner))
        .join(",")}${end}}`;
    case "array":
      if (node.items.length === 0) return "[]";
      return `[${node.items.map((item) => gap + write(item, indent, inner)).join(",")}${end}]`;
    case "string":
      return JSON.stringify(node.value);
    default:
      return node.text;
  }
}

/** The value of a member; of several with one name the last, as most readers have it. */
export function member(node: Node | undefined, name: string): Node | undefined {
  return node?.kind === "object" ? node.members.filter((m) => m.name === name).at(-1)?.value : undefined;
}

export function stringOf(node: Node | undefined): string | undefined {
  return node?.kind === "string" ? node.value : undefined;
}
