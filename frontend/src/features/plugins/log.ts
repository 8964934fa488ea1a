import { parts } from "../../text/visible";

/** The lines of a server's error output that a search leaves. */
export function found(lines: readonly string[], search: string): string[] {
  const wanted = search.trim().toLowerCase();
  return wanted === "" ? [...lines] : lines.filter((line) => line.toLowerCase().includes(wanted));
}

/** Lines as they can be pasted anywhere: what is invisible, or would steer a terminal, is written out. */
export function copied(lines: readonly string[]): string {
  return lines
    .map((line) =>
      parts(line, true)
        .map((part) => (part.mark ? `[${part.text}]` : part.text))
        .join(""),
    )
    .join("\n");
}
