import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import type { Component } from "svelte";
import { beforeEach, expect, it, vi } from "vitest";
import Asking from "../../test/Asking.svelte";

// The client takes fetch as it finds it.
const net = vi.hoisted(() => {
  const net = { sent: [] as string[], now: {} as Record<string, unknown> };
  globalThis.fetch = (given) => {
    const request = given as Request;
    net.sent.push(`${request.method} ${new URL(request.url).pathname}`);
    if (request.method === "POST") net.now = { ...net.now, state: "cancelled" };
    return Promise.resolve(
      Response.json({ id: "i1", revision: 1, entries: 0, bytes: 0, warnings: [], ...net.now }),
    );
  };
  return net;
});
import Installation from "./Installation.svelte";

beforeEach(() => {
  net.sent.length = 0;
  location.hash = "/plugins?install=i1";
});

const shown = () =>
  render(Asking, { of: Installation as unknown as Component<Record<string, unknown>>, given: { id: "i1" } });

it("says how far it is, and is cancelled with nothing left", async () => {
  net.now = { state: "staging", doing: "unpacking", entries: 1200, bytes: 2048 };
  shown();
  expect(await screen.findByText(/Unpacking…/)).toHaveTextContent("1,200 files, 2.0 KiB");
  expect(screen.getByRole("progressbar")).toBeVisible();
  await userEvent.setup().click(screen.getByRole("button", { name: "Cancel" }));
  expect(await screen.findByText(/Nothing of it stays/)).toBeVisible();
  expect(net.sent).toContain("POST /v1/installations/i1/cancel");
});

it("says why it failed, and what to do", async () => {
  net.now = {
    state: "failed",
    error: { code: "source-unknown", message: "there is no such folder", details: { next: "look again" } },
  };
  shown();
  expect(await screen.findByRole("alert")).toHaveTextContent(
    /there is no such folder.*look again.*source-unknown/s,
  );
  expect(screen.getByRole("button", { name: "Install another one" })).toBeVisible();
});

it("leads to the question by itself", async () => {
  net.now = { state: "asked", decision: "d-1" };
  shown();
  await vi.waitFor(() => expect(location.hash).toBe("#/review/d-1"), 20_000);
});

it("waits where there is something to know first", async () => {
  net.now = {
    state: "asked",
    decision: "d-1",
    warnings: [{ code: "case-collision", path: "A\u202eb", other: "a" }],
  };
  shown();
  expect(await screen.findByText("U+202E")).toBeVisible();
  expect(location.hash).toBe("#/plugins?install=i1");
  await userEvent.setup().click(screen.getByRole("button", { name: "Go to the review" }));
  expect(location.hash).toBe("#/review/d-1");
});
