import type { Schemas } from "../../api/client";

type Tool = Schemas["ApprovalsOfferedTool"];

/** The named choices of tools. None of them is made by itself: each is a click of the person's. */
export type Named = "none" | "read" | "same" | "all";

export function chosen(tools: readonly Tool[], how: Named): string[] {
  return tools
    .filter((t) => !t.refused)
    .filter(
      (t) =>
        how === "all" ||
        (how === "read" && t.suggested === "read") ||
        (how === "same" && t.before === "same"),
    )
    .map((t) => t.name);
}

/** Tools by how much care they take, the most dangerous first. */
export function byClass(tools: readonly Tool[]): { name: string; tools: Tool[] }[] {
  return ["destructive", "unknown", "write", "read"]
    .map((name) => ({ name, tools: tools.filter((t) => t.suggested === name) }))
    .filter((group) => group.tools.length > 0);
}
