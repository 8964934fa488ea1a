import { createQuery } from "@tanstack/svelte-query";
import { ask, toText } from "./fetch";
import { inWindow, proof } from "./session";

/** What only a page in Sallyport's own window can ask: about the window itself. These addresses are no part of
 * the contract. */

export type WindowView = {
  mode: "starting" | "own" | "attached" | "lost" | "failed";
  version?: string;
};

async function look(): Promise<WindowView> {
  const response = await ask("/window", { headers: proof() });
  if (!response.ok) {
    throw new Error("the window does not answer");
  }
  return (await response.json()) as WindowView;
}

/** How the window stands; asked again while what it shows does not answer. */
export const useWindow = (lost: () => boolean) =>
  createQuery(() => ({
    queryKey: ["window", lost()],
    queryFn: look,
    enabled: inWindow(),
    refetchInterval: lost() ? 2000 : (false as const),
  }));

const post = (path: string, body?: object) =>
  ask(path, {
    method: "POST",
    headers: { ...proof(), "Content-Type": "application/json" },
    body: body === undefined ? null : toText(body),
  });

/** Starts Sallyport in this window, in the place of one that has ended. */
export const startHere = () => post("/window/start");

/** Opens addresses of others in the system's browser: they are never loaded into the window. */
export function sendLinksOut(page: Document, stop: AbortSignal): void {
  page.addEventListener(
    "click",
    (event) => {
      const link =
        event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href]") : null;
      if (link !== null && /^https?:$/.test(link.protocol) && link.origin !== location.origin) {
        event.preventDefault();
        void post("/window/browse", { address: link.href });
      }
    },
    { capture: true, signal: stop },
  );
}
