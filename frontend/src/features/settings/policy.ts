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
  /** The tools of a connector that were approved so. */
  tools?: string[];
  /** What to ask of POST /v1/policy to take it away; without one it is a matter of the approval. */
  removal?: Schemas["PolicyChange"];
  /** The same rule again, for an undo. An answer cannot be put back. */
  again?: Schemas["PolicyChange"];
};

export function lines(policy: Schemas["ApprovalsPolicy"], now: number = Date.now()): Line[] {
  return [
    ...policy.standing.map((s) => answer(s)),
    ...policy.rules.map((r) => rule(r, now)),
    ...approved(policy.approved),
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
    detail: `${text.settings.ruleOf(r.by.user)}, ${ago(r.at, now)}`,
    kind: "rule",
    removal: { ...which, verdict: "remove" },
    again: { ...which, verdict: r.verdict },
  };
}

/** One line for each connector: PLUGIN/SERVER:TOOL, where no ID has a colon. */
function approved(all: readonly string[]): Line[] {
  const byConnector = new Map<string, string[]>();
  for (const one of all) {
    const at = one.indexOf(":");
    const connector = one.slice(0, at);
    byConnector.set(connector, [...(byConnector.get(connector) ?? []), one.slice(at + 1)]);
  }
  return [...byConnector].map(([connector, tools]) => ({
    key: `approved ${connector}`,
    about: connector,
    agent: text.settings.everyAgent,
    verdict: "allow",
    detail: text.settings.asApproved(tools.length),
    kind: "approved",
    tools,
  }));
}

/** The question before a line is taken away. What allowed narrows by going, the rest widens. */
export function question(line: Line): string {
  if (line.kind === "answer") return text.settings.takeBackAsk(line.about);
  const ask = {
    allow: text.settings.removeNarrow,
    ask: text.settings.removeAsk,
    deny: text.settings.removeDeny,
  };
  return (ask[line.verdict] ?? ask.deny)(line.about);
}
