import type { Schemas } from "../../api/client";
import { text } from "../../text";
import { ago } from "../../text/time";

/** What decides whether a call is asked about, as one list of lines: answers that hold, rules, and tools that were
 * approved to be called without asking. */
export type Line = {
  key: string;
  about: string;
  agent: string;
  verdict: "allow" | "ask" | "deny";
  /** Where it comes from and how long it holds. */
  detail: string;
  kind: "answer" | "rule" | "approved";
  /** What to ask of POST /v1/policy to take it away; without one it is a matter of the approval. */
  removal?: Schemas["PolicyChange"];
  /** The same rule again, for an undo. An answer cannot be put back. */
  again?: Schemas["PolicyChange"];
};

export function lines(policy: Schemas["ApprovalsPolicy"], now: number = Date.now()): Line[] {
  return [
    ...policy.standing.map((s) => answer(s)),
    ...policy.rules.map((r) => rule(r, now)),
    ...policy.approved.map((tool) => approved(tool)),
  ];
}

function answer(s: Schemas["ApprovalsStanding"]): Line {
  const lasts: Record<string, string> = text.settings.lasts;
  const until = lasts[s.for] ?? text.settings.until(new Date(s.until).toLocaleString());
  return {
    key: `answer ${s.tool} ${s.client} ${s.at}`,
    about: s.tool,
    agent: s.client,
    verdict: "allow",
    detail: `${text.settings.answered}, ${until}`,
    kind: "answer",
    removal: { tool: s.tool, client: s.client, verdict: "remove" },
  };
}

function rule(r: Schemas["ApprovalsRule"], now: number): Line {
  const which = {
    ...(r.class ? { class: r.class } : {}),
    ...(r.tool ? { tool: r.tool } : {}),
    ...(r.client ? { client: r.client } : {}),
  };
  return {
    key: `rule ${r.class ?? ""} ${r.tool ?? ""} ${r.client ?? ""}`,
    about: r.tool || text.settings.classOf(r.class ?? ""),
    agent: r.client || text.settings.everyAgent,
    verdict: r.verdict as Line["verdict"],
    detail: `${text.settings.rule}, ${r.by.user}, ${ago(r.at, now)}`,
    kind: "rule",
    removal: { ...which, verdict: "remove" },
    again: { ...which, verdict: r.verdict },
  };
}

function approved(tool: string): Line {
  return {
    key: `approved ${tool}`,
    about: tool,
    agent: text.settings.everyAgent,
    verdict: "allow",
    detail: text.settings.asApproved,
    kind: "approved",
  };
}

/** The question before a line is taken away. Only what allowed narrows by going. */
export function question(line: Line): string {
  if (line.kind === "answer") return text.settings.takeBackAsk(line.about);
  return line.verdict === "allow"
    ? text.settings.removeNarrow(line.about)
    : text.settings.removeWiden(line.about);
}
