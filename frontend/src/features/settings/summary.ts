import type { Schemas } from "../../api/client";

/** A commit as people write it: twelve digits, and "-dirty" where files had been changed. */
export function shortCommit(commit: string): string {
  return commit.replace(/^([0-9a-f]{12})[0-9a-f]+/, "$1");
}

/** A text for a report of a fault. It is made of a closed list of fields: codes, states and counts. No name of a
 * plugin, agent or secret, no path and no sentence is in it, since those may say more than their owner knows. */
export function summary(
  status: Schemas["Status"],
  more: { keyring?: Schemas["Keyring"]; onlyWindow?: boolean; folders?: number; rules?: number },
): string {
  const counts = Object.entries(status.connectors)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([state, count]) => `${state} ${count}`);
  const codes = [...new Set(status.problems.map((p) => `${p.code} (${p.severity})`))];
  return [
    `sallyport ${status.version}${status.commit ? ` (commit ${shortCommit(status.commit)})` : ""}`,
    `started ${status.startedAt}`,
    `healthy ${status.ok ? "yes" : "no"}`,
    `problems ${codes.join(", ") || "none"}`,
    `connectors ${counts.join(", ") || "none"}`,
    `running ${status.running}, waiting ${status.waiting}, agents ${status.clients}`,
    ...(more.keyring
      ? [
          `keyring ${more.keyring.state}${more.keyring.code ? ` (${more.keyring.code})` : ""}`,
          `seal key ${more.keyring.sealKey.in || "none"}${more.keyring.sealKey.waiting ? ", waited for" : ""}`,
        ]
      : []),
    ...(more.onlyWindow === undefined ? [] : [`only the window answers ${more.onlyWindow ? "yes" : "no"}`]),
    ...(more.folders === undefined ? [] : [`plugin folders ${more.folders}`]),
    ...(more.rules === undefined ? [] : [`rules and answers ${more.rules}`]),
  ].join("\n");
}
