/** What is done to a value that was typed: it is sent byte for byte, in base64. */
export function encoded(value: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(value)) {
    bytes += String.fromCharCode(byte);
  }
  return btoa(bytes);
}

export type Oddity = "spaces" | "unseen";

/** What nobody sees in a value that is typed hidden, and what is seldom meant: said, never mended. */
export function oddity(value: string): Oddity | undefined {
  if (/^\s|\s$/u.test(value)) return "spaces";
  return /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0\u2000-\u200a\u3000]/u.test(value) ? "unseen" : undefined;
}

/** Names as secrets.CheckName takes them; the API decides. */
export const isName = (name: string): boolean => /^[A-Za-z0-9_.-]{1,128}$/.test(name);
