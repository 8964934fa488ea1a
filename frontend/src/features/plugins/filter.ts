import type { Schemas } from "../../api/client";

type Connector = Schemas["Connector"];
export type Filter = { search: string; state: string; format: string };

/** The connectors that a filter leaves. The search is in name, title and source, in any case. */
export function matching(all: readonly Connector[], filter: Filter): Connector[] {
  const wanted = filter.search.trim().toLowerCase();
  return all.filter(
    (c) =>
      (filter.state === "" || c.state === filter.state) &&
      (filter.format === "" || c.format === filter.format) &&
      (wanted === "" || `${c.id} ${c.title ?? ""} ${c.source ?? ""}`.toLowerCase().includes(wanted)),
  );
}

/** What there is to choose from. */
export function values(all: readonly Connector[], field: "state" | "format"): string[] {
  return [...new Set(all.map((c) => c[field] ?? "").filter((v) => v !== ""))].sort();
}
