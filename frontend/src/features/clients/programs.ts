import type { Schemas } from "../../api/client";

type Program = Schemas["Program"];
export type Standing = "connected" | "changed" | "found" | "absent";

/** How a program stands to Sallyport. An entry that somebody changed since is no connection to rely on. */
export function standing(program: Program): Standing {
  if (program.connections.length > 0) {
    return program.connections.every((c) => c.state === "unchanged" || c.state === "file-edited")
      ? "connected"
      : "changed";
  }
  return program.files.length > 0 ? "found" : "absent";
}

/** The connection of the user's own file, which is what connecting without a project writes. */
export const ofUser = (program: Program): Schemas["ProgramConnection"] | undefined =>
  program.connections.find((c) => !c.project);

export type Line = { kind: "added" | "removed" | "same" | "gap"; text: string };

/** Reads a unified difference as lines, without its header. */
export function diffLines(diff: string): Line[] {
  const out: Line[] = [];
  let inside = false;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    if (line.startsWith("@@")) {
      if (inside) {
        out.push({ kind: "gap", text: "" });
      }
      inside = true;
    } else if (inside) {
      const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same";
      out.push({ kind, text: line.startsWith("\\") ? line : line.slice(1) });
    }
  }
  return out;
}
