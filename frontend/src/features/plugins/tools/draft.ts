import { isNumber, NotJSON, parse, write, type Node } from "../../../text/json";
import type { Field } from "./fields";

/** What a person has put into a field so far. An empty one is not sent, unless it is required. */
export type Draft = { text: string; isNull: boolean; members: Draft[]; items: Draft[] };

export type Problem =
  | { what: "missing" | "number" | "integer" | "json" }
  | { what: "min" | "max" | "above" | "below" | "shortest" | "longest" | "fewest" | "most"; limit: number };

/** What would be sent for a field: JSON, or nothing. Problems are by the field's path ("" is the root). */
export type Built = { text?: string; problems: Map<string, Problem> };

export function empty(field: Field): Draft {
  return { text: "", isNull: false, members: field.fields.map(empty), items: [] };
}

export const below = (path: string, at: number): string => (path === "" ? `${at}` : `${path}.${at}`);

export function build(field: Field, draft: Draft, path = ""): Built {
  const problems = new Map<string, Problem>();
  const wrong = (problem: Problem): Built => ({ problems: problems.set(path, problem) });
  if (draft.isNull) return { text: "null", problems };
  switch (field.kind) {
    case "object":
      return objectOf(field, draft, path);
    case "list":
      return listOf(field, draft, path);
    case "fixed":
      return field.required || draft.text !== "" ? { text: field.options[0], problems } : { problems };
    case "text":
      return textOf(field, draft, problems, wrong);
  }
  const text = draft.text.trim();
  if (text === "") return field.required ? wrong({ what: "missing" }) : { problems };
  switch (field.kind) {
    case "number":
    case "integer":
      return numberOf(field, text, problems, wrong);
    case "json":
      try {
        return { text: write(parse(text)), problems };
      } catch (error) {
        if (!(error instanceof NotJSON)) throw error;
        return wrong({ what: "json" });
      }
    default:
      return { text, problems }; // of a choice or a boolean: JSON already
  }
}

type Wrong = (problem: Problem) => Built;

function textOf(field: Field, draft: Draft, problems: Map<string, Problem>, wrong: Wrong): Built {
  if (draft.text === "" && !field.required) return { problems };
  const { shortest, longest } = field.limits;
  const length = [...draft.text].length;
  if (draft.text === "" && (shortest ?? 0) > 0) return wrong({ what: "missing" });
  if (shortest !== undefined && length < shortest) return wrong({ what: "shortest", limit: shortest });
  if (longest !== undefined && length > longest) return wrong({ what: "longest", limit: longest });
  return { text: JSON.stringify(draft.text), problems };
}

/** The digits are sent as they were typed: a number beyond 2^53 would be another one otherwise. */
function numberOf(field: Field, text: string, problems: Map<string, Problem>, wrong: Wrong): Built {
  if (!isNumber(text)) return wrong({ what: field.kind === "integer" ? "integer" : "number" });
  if (field.kind === "integer" && !/^-?\d+$/.test(text)) return wrong({ what: "integer" });
  const value = Number(text);
  const { min, max, above, below } = field.limits;
  if (min !== undefined && value < min) return wrong({ what: "min", limit: min });
  if (max !== undefined && value > max) return wrong({ what: "max", limit: max });
  if (above !== undefined && value <= above) return wrong({ what: "above", limit: above });
  if (below !== undefined && value >= below) return wrong({ what: "below", limit: below });
  return { text, problems };
}

function objectOf(field: Field, draft: Draft, path: string): Built {
  const problems = new Map<string, Problem>();
  const members: string[] = [];
  for (const [at, member] of field.fields.entries()) {
    const built = build(member, draft.members[at] ?? empty(member), below(path, at));
    built.problems.forEach((problem, where) => problems.set(where, problem));
    if (built.text !== undefined) members.push(`${JSON.stringify(member.name)}:${built.text}`);
  }
  // An object that nobody wanted is not sent, whatever it would need.
  if (!field.required && !touched(draft)) return { problems: new Map() };
  return { text: `{${members.join(",")}}`, problems };
}

function listOf(field: Field, draft: Draft, path: string): Built {
  const problems = new Map<string, Problem>();
  if (draft.items.length === 0 && !field.required) return { problems };
  const { fewest, most } = field.limits;
  if (fewest !== undefined && draft.items.length < fewest)
    problems.set(path, { what: "fewest", limit: fewest });
  if (most !== undefined && draft.items.length > most) problems.set(path, { what: "most", limit: most });
  const items: string[] = [];
  for (const [at, item] of draft.items.entries()) {
    const built = build(field.item!, item, below(path, at));
    built.problems.forEach((problem, where) => problems.set(where, problem));
    if (built.text !== undefined) items.push(built.text);
  }
  return { text: `[${items.join(",")}]`, problems };
}

function touched(draft: Draft): boolean {
  return draft.text !== "" || draft.isNull || draft.items.length > 0 || draft.members.some(touched);
}

/** Puts JSON back into the form; undefined where the form has no place for something in it. */
export function fill(field: Field, node: Node): Draft | undefined {
  const draft = empty(field);
  if (node.kind === "literal" && node.text === "null" && field.nullable) return { ...draft, isNull: true };
  switch (field.kind) {
    case "text":
      // An optional empty text would not be sent again.
      return node.kind === "string" && (node.value !== "" || field.required)
        ? { ...draft, text: node.value }
        : undefined;
    case "number":
    case "integer":
      return node.kind === "number" ? { ...draft, text: node.text } : undefined;
    case "boolean":
      return node.kind === "literal" && node.text !== "null" ? { ...draft, text: node.text } : undefined;
    case "choice":
    case "fixed":
      return field.options.includes(write(node)) ? { ...draft, text: write(node) } : undefined;
    case "json":
      return { ...draft, text: write(node, "  ") };
    case "list":
      return fillList(field, node, draft);
    case "object":
      return fillObject(field, node, draft);
  }
}

function fillList(field: Field, node: Node, draft: Draft): Draft | undefined {
  if (node.kind !== "array" || (node.items.length === 0 && !field.required)) return undefined;
  const items = node.items.map((item) => fill(field.item!, item));
  return items.every((item) => item !== undefined) ? { ...draft, items } : undefined;
}

function fillObject(field: Field, node: Node, draft: Draft): Draft | undefined {
  if (node.kind !== "object") return undefined;
  const members = [...draft.members];
  const seen = new Set<number>();
  for (const { name, value } of node.members) {
    const at = field.fields.findIndex((member) => member.name === name);
    const filled = at < 0 || seen.has(at) ? undefined : fill(field.fields[at]!, value);
    if (filled === undefined) return undefined;
    seen.add(at);
    members[at] = filled;
  }
  const whole = { ...draft, members };
  return field.required || touched(whole) ? whole : undefined;
}
