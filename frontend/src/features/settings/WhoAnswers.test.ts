import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import type { Component } from "svelte";
import { afterEach, expect, it, vi } from "vitest";
import Asking from "../../test/Asking.svelte";

const api = vi.hoisted(() => {
  const api = { only: false, sent: [] as unknown[] };
  globalThis.fetch = async (given) => {
    const request = given as Request;
    if (request.method === "POST") {
      const body = JSON.parse(await request.text());
      api.sent.push(body);
      api.only = body.answerOnlyInWindow;
    }
    return new Response(JSON.stringify({ answerOnlyInWindow: api.only, folders: [] }), {
      headers: { "Content-Type": "application/json" },
    });
  };
  return api;
});
import WhoAnswers from "./WhoAnswers.svelte";

afterEach(() => {
  document.head.replaceChildren();
  Object.assign(api, { only: false, sent: [] });
});

function shown(inWindow: boolean) {
  if (inWindow) document.head.innerHTML = '<meta name="sallyport-token" content="t">';
  render(Asking, { of: WhoAnswers as unknown as Component<Record<string, unknown>> });
  return userEvent.setup();
}

it("has no button in a browser, and says where it is changed", async () => {
  shown(false);
  expect(await screen.findByText("Only the window changes this.")).toBeInTheDocument();
  expect(screen.queryByRole("button")).toBeNull();
});

it("narrows at once in the window, and asks before it widens", async () => {
  const user = shown(true);
  await user.click(await screen.findByRole("button", { name: "Let only the window answer" }));
  await user.click(await screen.findByRole("button", { name: "Let others answer too…" }));
  expect(api.sent).toEqual([{ answerOnlyInWindow: true }]);
  expect(screen.getByRole("button", { name: "Leave it" })).toHaveFocus();
  await user.click(screen.getByRole("button", { name: "Let others answer too" }));
  expect(await screen.findByRole("button", { name: "Let only the window answer" })).toBeInTheDocument();
  expect(api.sent).toEqual([{ answerOnlyInWindow: true }, { answerOnlyInWindow: false }]);
});
