import { afterEach, expect, it, vi } from "vitest";
import { sendLinksOut } from "./window";

afterEach(() => {
  vi.unstubAllGlobals();
  document.body.innerHTML = "";
});

it("opens addresses of others in the browser, and follows its own", () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    asked.push(`${path} ${String(init.body)}`);
    return Promise.resolve(new Response());
  });
  const stop = new AbortController();
  sendLinksOut(document, stop.signal);
  document.body.innerHTML = `<a id="out" href="https://example.com/x"><b>out</b></a><a id="in" href="#/plugins">in</a>`;
  const click = (selector: string) => {
    const event = new MouseEvent("click", { bubbles: true, cancelable: true });
    document.querySelector(selector)?.dispatchEvent(event);
    return event.defaultPrevented;
  };
  expect(click("#out b")).toBe(true);
  expect(click("#in")).toBe(false);
  expect(asked).toEqual(['/window/browse {"address":"https://example.com/x"}']);
  stop.abort();
});
