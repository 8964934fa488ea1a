import type { Schemas } from "../../api/client";

export type Why = "first" | "again" | "tools" | "call" | "install" | "update" | "undo" | "uninstall";

/** Which of the reasons it is that a question is asked for. */
export function whyAsked(
  decision: Pick<Schemas["Decision"], "kind" | "stage" | "action" | "call" | "bundle">,
): Why {
  if (decision.call) return "call";
  if (decision.bundle) {
    const acts: Record<string, Why> = {
      install: "install",
      update: "update",
      undo: "undo",
      uninstall: "uninstall",
    };
    return acts[decision.action] ?? "install";
  }
  if (decision.stage === "tools") return "tools";
  return decision.action === "install" ? "first" : "again";
}
