import { ask } from "./fetch";

/** How this page proves who it is: the window has a token of its own in the page that only it is given; a
 * browser has a cookie, which it got for a one-time code and which no script can read. */

function windowToken(): string | undefined {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="sallyport-token"]');
  return meta?.content || undefined;
}

export const inWindow = (): boolean => windowToken() !== undefined;

/** The key that goes with the cookie. It lies in the storage of this very origin, which no other port shares. */
const keyName = "sallyport-page";

/** Headers of every request. The window shows no notice of what its person sees already. */
export function proof(): Record<string, string> {
  const token = windowToken();
  return token
    ? { Authorization: `Bearer ${token}`, "X-Sallyport-Focus": document.hasFocus() ? "yes" : "no" }
    : { "X-Sallyport-Page": localStorage.getItem(keyName) ?? "" };
}

/** Takes the one-time code out of the address, so that it stays in no history. A link may name the decision to open. */
export function takeCode(): string | undefined {
  const match = /^#\/?open\?code=([A-Za-z0-9_-]+)(?:&review=([A-Za-z0-9-]+))?$/.exec(location.hash);
  if (match === null) {
    return undefined;
  }
  const page = match[2] === undefined ? "" : `review/${match[2]}`;
  history.replaceState(null, "", location.pathname + "#/" + page);
  dispatchEvent(new HashChangeEvent("hashchange"));
  return match[1];
}

export async function redeem(code: string): Promise<boolean> {
  const response = await ask("/v1/session", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...proof() },
    body: JSON.stringify({ code }),
  });
  if (response.ok) {
    const { key } = (await response.json()) as { key: string };
    localStorage.setItem(keyName, key);
  }
  return response.ok;
}

/** Drops the key of a session that is over. */
export function forgetKey(): void {
  localStorage.removeItem(keyName);
}
