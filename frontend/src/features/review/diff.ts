import { parsePatch } from "diff";

/** One line of a difference, with its numbers on both sides. */
export type Line = { kind: "same" | "added" | "removed" | "gap"; text: string; old?: number; now?: number };

/** Reads a unified difference as lines. */
export function lines(patch: string): Line[] {
  const out: Line[] = [];
  for (const file of parsePatch(patch)) {
    for (const [at, hunk] of file.hunks.entries()) {
      if (at > 0) {
        out.push({ kind: "gap", text: "" });
      }
      let old = hunk.oldStart;
      let now = hunk.newStart;
      for (const line of hunk.lines) {
        const text = line.slice(1);
        if (line.startsWith("+")) {
          out.push({ kind: "added", text, now: now++ });
        } else if (line.startsWith("-")) {
          out.push({ kind: "removed", text, old: old++ });
        } else if (line.startsWith(" ")) {
          out.push({ kind: "same", text, old: old++, now: now++ });
        }
      }
    }
  }
  return out;
}

export type Pair = { old?: Line; now?: Line };

/** Puts what was removed beside what was added in its place. */
export function sides(all: readonly Line[]): Pair[] {
  const out: Pair[] = [];
  let removed: Line[] = [];
  let added: Line[] = [];
  const flush = (): void => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      out.push({ old: removed[i], now: added[i] });
    }
    removed = [];
    added = [];
  };
  for (const line of all) {
    if (line.kind === "removed") {
      removed.push(line);
    } else if (line.kind === "added") {
      added.push(line);
    } else {
      flush();
      out.push({ old: line, now: line });
    }
  }
  flush();
  return out;
}
