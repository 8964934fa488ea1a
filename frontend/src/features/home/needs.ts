import type { Schemas } from "../../api/client";

/** One thing that waits for the person, and where to go for it. */
export type Need = { id: string; title: string; detail: string; href: string; tone: "warn" | "bad" };

/** Puts together what needs a person: open questions first, then connectors that changed or broke. A plugin that
 * was never approved is news only until something else was. */
export function needs(
  connectors: readonly Schemas["Connector"][],
  decisions: readonly Schemas["Decision"][],
): Need[] {
  const open = decisions.filter((d) => d.state === "open");
  const asked = new Set(open.map((d) => d.subject));
  const out: Need[] = open.map((d) => ({
    id: d.id,
    title: d.sentence,
    detail: d.subject,
    href: `#/review/${encodeURIComponent(d.id)}`,
    tone: "warn",
  }));
  for (const c of connectors) {
    const changed = c.state === "approval_required" && c.reason !== "never-approved";
    const broken = c.state === "blocked" || c.state === "parked";
    if ((changed || broken || c.state === "tools_required") && !asked.has(c.id)) {
      out.push({
        id: c.id,
        title: c.id,
        detail: c.sentence ?? c.reason,
        href: `#/plugins/${encodeURIComponent(c.plugin)}/${encodeURIComponent(c.server ?? "")}`,
        tone: broken ? "bad" : "warn",
      });
    }
  }
  return out;
}
