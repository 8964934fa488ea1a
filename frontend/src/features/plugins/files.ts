import type { Schemas } from "../../api/client";

type Entry = Schemas["ApprovalsTreeEntry"];

/** The files and links of a bundle that a search leaves; folders are in the paths. */
export function listed(all: readonly Entry[], search: string, changedOnly: boolean): Entry[] {
  const wanted = search.trim().toLowerCase();
  return all.filter(
    (e) =>
      e.kind !== "folder" &&
      (!changedOnly || Boolean(e.change)) &&
      (wanted === "" || e.path.toLowerCase().includes(wanted)),
  );
}

/** A bundle in numbers. */
export function sums(all: readonly Entry[]): { files: number; bytes: number; changed: number } {
  const there = all.filter((e) => e.kind === "file" && e.change !== "removed");
  return {
    files: there.length,
    bytes: there.reduce((sum, e) => sum + e.size, 0),
    changed: all.filter((e) => e.kind !== "folder" && Boolean(e.change)).length,
  };
}

export type Copy = "now" | "approved";

/** Which copies of a file there are. What nobody approved has one; so has what is the same in both. */
export function copies(entry: Entry, approved: boolean): Copy[] {
  switch (entry.change) {
    case "removed":
      return ["approved"];
    case "modified":
      return ["now", "approved"];
    case "added":
      return ["now"];
    default:
      return approved ? ["approved"] : ["now"];
  }
}
