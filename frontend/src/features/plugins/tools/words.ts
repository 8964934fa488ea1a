import { text } from "../../../text";
import type { Problem } from "./draft";
import type { Field, Kind } from "./fields";

const kinds: Record<Kind, string> = text.tryTool.kinds;

/** A field's type, as a person says it, with its limits. */
export function typeText(field: Field): string {
  const limits: Record<string, (n: number) => string> = text.tryTool.limits;
  const why: Record<string, string> = text.tryTool.why;
  const words = [
    field.kind === "list" && field.item ? text.tryTool.listOf(kinds[field.item.kind]) : kinds[field.kind],
  ];
  if (field.kind === "json" && field.why) words.push(why[field.why] ?? "");
  for (const [what, limit] of Object.entries(field.limits)) words.push(limits[what]?.(limit) ?? "");
  if (field.nullable) words.push(text.tryTool.orNull);
  return words.filter(Boolean).join(", ");
}

export function problemText(problem: Problem): string {
  if ("limit" in problem) return text.tryTool.wrongLimit[problem.what](problem.limit);
  return text.tryTool.wrong[problem.what];
}
