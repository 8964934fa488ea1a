/** Text of a plugin's is text: what cannot be seen is shown as a mark, so that nothing hides in it. */
export type Part = { text: string; mark: boolean };

const hidden =
  /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u205f\u3000\u3164\ufe00-\ufe0f\uffa0]/u;

/** With multiline, line ends and tabs are layout and no marks. */
export function parts(value: string, multiline = false): Part[] {
  const out: Part[] = [];
  let plain = "";
  for (const character of value) {
    if (!hidden.test(character) || (multiline && (character === "\n" || character === "\t"))) {
      plain += character;
      continue;
    }
    if (plain !== "") {
      out.push({ text: plain, mark: false });
      plain = "";
    }
    out.push({
      text: `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`,
      mark: true,
    });
  }
  if (plain !== "") {
    out.push({ text: plain, mark: false });
  }
  return out;
}

/** The same where a page has place for bare text alone: a name for a reader, an option, a title. */
export function plain(value: string, limit = 400): string {
  const shown = parts(value.slice(0, limit)).map((part) => part.text);
  return shown.join("") + (value.length > limit ? "…" : "");
}
