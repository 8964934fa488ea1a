import type { Schemas } from "../../api/client";

type Connector = Schemas["Connector"];

/** What the list shows. It is part of the page's address, so that the way back leads to the same list. */
export type Filter = { search: string; state: string; format: string; source: string };

const fields = ["search", "state", "format", "source"] as const;

export function fromQuery(query: URLSearchParams): Filter {
  const filter: Filter = { search: "", state: "", format: "", source: "" };
  for (const field of fields) filter[field] = query.get(field) ?? "";
  return filter;
}

export function toPath(filter: Filter): string {
  const query = new URLSearchParams();
  for (const field of fields) if (filter[field] !== "") query.set(field, filter[field]);
  return query.size === 0 ? "/plugins" : `/plugins?${query}`;
}

/** The folder that a connector lies in, of one that is written by hand the file. */
export function place(c: Pick<Connector, "source">): string {
  const source = c.source ?? "";
  const at = source.lastIndexOf("/");
  return at > 0 ? source.slice(0, at) : source;
}

/** A connector with the text that is searched, made once and not at every letter. */
export type Entry = { connector: Connector; words: string; place: string };

export const entries = (all: readonly Connector[]): Entry[] =>
  all.map((connector) => ({
    connector,
    words:
      `${connector.id} ${(connector.title ?? "").slice(0, 2000)} ${connector.source ?? ""}`.toLowerCase(),
    place: place(connector),
  }));

/** The connectors that a filter leaves. The search is in name, title and source, in any case. */
export function matching(all: readonly Entry[], filter: Filter): Connector[] {
  const wanted = filter.search.trim().toLowerCase();
  return all
    .filter(
      ({ connector: c, words, place }) =>
        (filter.state === "" || c.state === filter.state) &&
        (filter.format === "" || c.format === filter.format) &&
        (filter.source === "" || place === filter.source) &&
        (wanted === "" || words.includes(wanted)),
    )
    .map((entry) => entry.connector);
}

/** What there is to choose from. A choice that leads to nothing by now stays one, so that it is seen. */
export function values(
  all: readonly Entry[],
  field: "state" | "format" | "source",
  chosen: string,
): string[] {
  const of = (entry: Entry): string => (field === "source" ? entry.place : (entry.connector[field] ?? ""));
  return [...new Set([...all.map(of), chosen])].filter((v) => v !== "").sort();
}
