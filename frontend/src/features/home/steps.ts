import type { Schemas } from "../../api/client";

export type Step = { key: "allow" | "connect" | "call"; done: boolean };

/** Whether somebody has allowed it to run at some time. */
const allowed = (c: Schemas["Connector"]): boolean =>
  ["enabled", "disabled", "blocked", "parked"].includes(c.state) ||
  (c.state === "approval_required" && c.reason !== "never-approved");

/** Whether an agent made this call, and not a person who tried a tool. */
export const byAgent = (record: Schemas["AuditRecord"]): boolean =>
  record.action === "call" && record.via === "mcp";

/** The way from an empty installation to a tool that answers in an agent; nothing once it was walked. */
export function steps(
  connectors: readonly Schemas["Connector"][],
  agents: readonly Schemas["Client"][],
  calls: readonly Schemas["AuditRecord"][],
): Step[] {
  if (calls.some(byAgent)) {
    return [];
  }
  return [
    { key: "allow", done: connectors.some(allowed) },
    { key: "connect", done: agents.some((a) => a.scope.all || a.scope.only.length > 0) },
    { key: "call", done: false },
  ];
}
