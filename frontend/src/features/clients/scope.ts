import type { Schemas } from "../../api/client";
import { text } from "../../text";

type Scope = Schemas["Scope"];
export type Sees = "all" | "some" | "none";

/** What a client sees, in words. */
export function words(scope: Scope): string {
  if (scope.all) {
    return text.clients.seesAll;
  }
  if (scope.only.length === 0) {
    return text.clients.seesNone;
  }
  const named = scope.only.slice(0, 3).join(", ");
  return scope.only.length > 3 ? `${named} ${text.clients.andMore(scope.only.length - 3)}` : named;
}

/** How much of a connector a client sees. */
export function sees(scope: Scope, connector: string): Sees {
  if (scope.all || scope.only.includes(connector)) {
    return "all";
  }
  return scope.only.some((line) => line.startsWith(`${connector}:`)) ? "some" : "none";
}

export const seesTool = (scope: Scope, connector: string, tool: string): boolean =>
  sees(scope, connector) === "all" || scope.only.includes(`${connector}:${tool}`);

export type Group = { connector: string; tools: Schemas["Tool"][] };

/** The tools that may be called, by connector. */
export function byConnector(tools: readonly Schemas["Tool"][]): Group[] {
  const groups = new Map<string, Schemas["Tool"][]>();
  for (const tool of tools) {
    groups.set(tool.connector, [...(groups.get(tool.connector) ?? []), tool]);
  }
  return [...groups].map(([connector, list]) => ({ connector, tools: list }));
}

/** The lines of a scope of which nothing is enabled now. */
export function idle(scope: Scope, groups: readonly Group[]): string[] {
  return scope.only.filter(
    (line) =>
      !groups.some((g) => line === g.connector || g.tools.some((t) => line === `${g.connector}:${t.name}`)),
  );
}

/** What to grant so that a client sees again what it saw before. */
export function back(before: Scope, after: Scope): Schemas["ScopeChange"] | undefined {
  if (before.all) {
    return after.all ? undefined : { all: true };
  }
  const lost = before.only.filter((line) => !after.only.includes(line));
  return after.all || lost.length === 0 ? undefined : { only: lost };
}
