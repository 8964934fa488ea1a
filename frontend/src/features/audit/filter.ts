/** What the timeline shows. It is part of the page's address, so that a link can lead to it. */
export type Filter = { plugin: string; action: string; result: string; client: string; within: string };

export const results = ["ok", "refused", "failed"] as const;

/** Lengths of time to look back, in hours. */
export const spans: Record<string, number> = { "1h": 1, "24h": 24, "7d": 7 * 24, "30d": 30 * 24 };

const fields = ["plugin", "action", "result", "client", "within"] as const;

export function fromQuery(query: URLSearchParams): Filter {
  const filter: Filter = { plugin: "", action: "", result: "", client: "", within: "" };
  for (const field of fields) {
    filter[field] = query.get(field) ?? "";
  }
  return filter;
}

/** The address of a filter. */
export function toPath(filter: Filter): string {
  const query = new URLSearchParams();
  for (const field of fields) {
    if (filter[field] !== "") {
      query.set(field, filter[field]);
    }
  }
  return query.size === 0 ? "/audit" : `/audit?${query}`;
}

export type Asked = { plugin?: string; action?: string; result?: string; client?: string; since?: string };

/** A filter as the API takes it. The time is that of the moment: pages of one walk share it. */
export function asked(filter: Filter, now: number): Asked {
  const hours = spans[filter.within];
  return {
    ...(filter.plugin && { plugin: filter.plugin }),
    ...(filter.action && { action: filter.action }),
    ...(filter.result && { result: filter.result }),
    ...(filter.client && { client: filter.client }),
    ...(hours !== undefined && {
      since: new Date(now - hours * 3_600_000).toISOString().replace(/\.\d+Z$/, "Z"),
    }),
  };
}
