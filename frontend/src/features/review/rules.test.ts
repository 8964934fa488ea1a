// The rules of asking well that a component can break: each has a test here.
import { render, screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import type { Component } from "svelte";
import { beforeEach, expect, it, vi } from "vitest";
import Asking from "../../test/Asking.svelte";

const api = vi.hoisted(() => {
  const api = { sent: [] as { path: string; body: unknown }[], answers: {} as Record<string, unknown> };
  globalThis.fetch = async (given) => {
    const request = given as Request;
    const path = new URL(request.url).pathname;
    if (request.method === "POST") {
      const body = await request.text();
      api.sent.push({ path, body: body === "" ? undefined : JSON.parse(body) });
    }
    const found = api.answers[path];
    return new Response(JSON.stringify(found ?? { code: "not-found", message: "nothing", details: {} }), {
      status: found ? 200 : 404,
      headers: { "Content-Type": "application/json" },
    });
  };
  return api;
});
import Digest from "../../ui/Digest.svelte";
import Changed from "./Changed.svelte";
import Facts from "./Facts.svelte";
import One from "./One.svelte";
import { whyAsked } from "./why";

const expires = new Date(Date.now() + 9 * 60_000).toISOString();
const base = {
  id: "d-1",
  kind: "approval",
  stage: "run",
  action: "install",
  subject: "notes/main",
  options: ["allow", "deny"],
  createdAt: new Date().toISOString(),
  expiresAt: expires,
  state: "open",
  identity: "i1:0",
  digest: "a1:0",
  version: "1",
  journal: [],
};
const review = {
  id: "notes/main",
  sentence: "notes 1 wants to run a program on this computer.",
  facts: [],
  runs: { command: "node", args: ["--x", "\u202eevil"], executable: "/usr/bin/node", cwd: "${PLUGIN_ROOT}" },
  env: [],
  literals: [],
  may: [],
  options: [],
  skills: [],
  files: { count: 0, bytes: 0, executables: [], warnings: [] },
  source: "~/.agents/plugins/notes",
  digest: "a1:0",
};
const call = {
  sentence: "claude wants notes/main to run add.",
  tool: "add",
  client: "claude",
  class: "write",
  arguments: '{"to": {"name": "<b>Ann</b>"}, "n": 9007199254740993}',
  leftOut: false,
  sent: "0",
};

function open(decision: object, also: Record<string, unknown> = {}) {
  api.answers = { "/v1/decisions/d-1": { ...base, ...decision }, ...also };
  const of = One as unknown as Component<Record<string, unknown>>;
  render(Asking, { of, given: { id: "d-1" } });
  return userEvent.setup();
}
const asRun = { "/v1/plugins/notes/main/review": review };

beforeEach(() => {
  api.sent.length = 0;
});

it.each([
  ["may it run", {}, "Deny", /Allow to run/],
  ["which tools", { stage: "tools", action: "tools", tools: [] }, "Allow none", /Enable/],
  ["a call", { kind: "call", stage: "", action: "call", call }, "Deny", "Allow this call"],
  [
    "a bundle",
    {
      stage: "bundle",
      bundle: {
        sentence: "Install notes.",
        facts: [],
        source: "",
        servers: [],
        files: 0,
        bytes: 0,
        digest: "",
      },
    },
    "Deny",
    "Install",
  ],
])("%s: no has the focus, and Enter never says yes", async (_, decision, no, yes) => {
  const user = open(decision, asRun);
  expect(await screen.findByRole("button", { name: no })).toHaveFocus();
  screen.getByRole("button", { name: yes }).focus();
  await user.keyboard("{Enter}");
  // Where there is nothing to say yes to, Enter presses the no that has the focus.
  expect(api.sent.filter(({ body }) => (body as { answer: string }).answer !== "deny")).toEqual([]);
});

it("says what is left as time left, and why it is asked at one click", async () => {
  const user = open({}, asRun);
  expect(await screen.findByText("9 min left")).toBeVisible();
  const why = screen.getByText(/nobody has approved on this computer yet/);
  expect(why).not.toBeVisible();
  await user.click(screen.getByText("Why am I asked?"));
  expect(why).toBeVisible();
});

it("gives one argument a line, with what cannot be seen as a mark", async () => {
  open({}, asRun);
  expect(await screen.findByText("--x")).toBeInTheDocument();
  expect(screen.getByText("U+202E")).toHaveClass("mark");
});

it("preselects no tool; each named choice is a click", async () => {
  const tool = (name: string, more: object) => ({ name, description: "", suggested: "read", ...more });
  const user = open({
    stage: "tools",
    action: "tools",
    tools: [
      tool("old", { before: "same" }),
      tool("odd", { before: "changed", difference: "--- before\n+++ now\n@@ -1 +1 @@\n-was\n+is\n" }),
      tool("no", { refused: "tool-unpinnable" }),
    ],
  });
  const boxes = await screen.findAllByRole<HTMLInputElement>("checkbox", { name: /^(old|odd|no)/ });
  expect(boxes.map((box) => box.checked)).toEqual([false, false, false]);
  expect(screen.getByText("+ is")).toBeVisible();
  expect(screen.getByText("− was")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Those allowed before and unchanged" }));
  expect(boxes.map((box) => box.checked)).toEqual([true, false, false]);
  await user.click(screen.getByRole("button", { name: "All" }));
  expect(boxes.map((box) => box.checked)).toEqual([true, true, false]);
});

it("shows a call's arguments as a tree of text, and says what a longer yes means", async () => {
  const user = open({ kind: "call", stage: "", action: "call", call });
  expect(await screen.findByText("<b>Ann</b>")).toBeVisible();
  expect(screen.getByText("9007199254740993")).toBeVisible();
  const holds = screen.getByRole<HTMLSelectElement>("combobox", { name: "A yes holds" });
  expect(holds.value).toBe("once");
  await user.selectOptions(holds, "always");
  expect(screen.getByText(/with any arguments and without asking/)).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Always allow" }));
  expect(api.sent).toEqual([{ path: "/v1/decisions/d-1/answer", body: { answer: "allow", for: "always" } }]);
});

it("shows the first try while it goes on, and cancels it", async () => {
  const probe = {
    decision: "d-1",
    state: "running",
    revision: 3,
    ms: 1200,
    steps: [
      { doing: "checking", ms: 200 },
      { doing: "starting", ms: 1000 },
    ],
    stderr: ["one", "<b>two</b>"],
  };
  const user = open(
    { state: "probing", answer: "allow" },
    { ...asRun, "/v1/decisions/d-1/probe": probe, "/v1/decisions/d-1/cancel": base },
  );
  const first = await screen.findByRole("region", { name: "The first try" });
  expect(await within(first).findByText(/<b>two<\/b>/)).toBeVisible();
  expect(within(first).getByRole("listitem", { current: "step" })).toHaveTextContent("starting");
  expect(screen.queryByRole("button", { name: /Allow/ })).toBeNull();
  await user.click(within(first).getByRole("button", { name: "Cancel the try" }));
  expect(api.sent).toEqual([{ path: "/v1/decisions/d-1/cancel", body: undefined }]);
});

it("says why a first try came to nothing, and offers to ask again", async () => {
  open(
    { state: "probe-failed", code: "transport-closed" },
    {
      ...asRun,
      "/v1/decisions/d-1/probe": {
        decision: "d-1",
        state: "failed",
        revision: 9,
        ms: 5,
        steps: [{ doing: "checking", ms: 5 }],
        stderr: ["no licence"],
        error: { code: "transport-closed", message: "it ended", details: { next: "mend it" } },
      },
    },
  );
  expect(await screen.findByText("it ended")).toBeVisible();
  expect(screen.getByText(/mend it/)).toBeVisible();
  expect(screen.getByText("no licence")).toBeVisible();
  expect(screen.getByRole("button", { name: "Review it again…" })).toBeEnabled();
});

it("shows three facts, and folds the rest", async () => {
  const facts = [1, 2, 3, 4, 5].map((n) => ({ code: `c${n}`, sentence: `fact ${n}`, red: n < 3 }));
  render(Facts, { facts });
  expect(screen.getAllByRole("listitem")).toHaveLength(3);
  await userEvent.setup().click(screen.getByRole("button", { name: "2 more" }));
  expect(screen.getAllByRole("listitem")).toHaveLength(5);
});

it("gives a digest whole, to be selected", () => {
  render(Digest, { value: "a1:0123" });
  expect(screen.getByText("a1:0123")).toBeVisible();
});

it("shows sizes of what is no text, what would run old and new, and keeps how a difference is shown", async () => {
  const diff = {
    id: "notes/main",
    files: [
      {
        path: "a.js",
        kind: "modified",
        text: "--- a\n+++ b\n@@ -1 +1 @@\n-old line\n+new line\n",
        added: 1,
        removed: 1,
        oldSize: 1,
        newSize: 1,
      },
      { path: "logo.png", kind: "modified", binary: true, oldSize: 2048, newSize: 10, added: 0, removed: 0 },
    ],
    filesLeftOut: 0,
    launch: [{ field: "arguments", old: "--safe", new: "--fast" }],
    tools: [],
  };
  const first = render(Changed, { diff } as never);
  expect(screen.getByText("binary, 2.0 KiB → 10 bytes")).toBeVisible();
  expect(screen.getByText("--safe")).toBeVisible();
  expect(screen.getByText("--fast")).toBeVisible();
  expect(screen.getByText(/new line/).closest("table")).not.toHaveClass("split");
  await userEvent.setup().click(screen.getByRole("button", { name: "Side by side" }));
  expect(screen.getByText(/new line/).closest("table")).toHaveClass("split");
  first.unmount();
  render(Changed, { diff } as never);
  expect(screen.getByText(/new line/).closest("table")).toHaveClass("split");
  expect(screen.getByRole("button", { name: "Side by side" })).toHaveAttribute("aria-pressed", "true");
});

it.each([
  [{ kind: "call", stage: "", action: "call", call }, "call"],
  [{ kind: "approval", stage: "run", action: "upgrade" }, "again"],
  [{ kind: "approval", stage: "run", action: "reconnect" }, "again"],
  [{ kind: "approval", stage: "tools", action: "tools" }, "tools"],
  [{ kind: "approval", stage: "bundle", action: "uninstall", bundle: {} }, "uninstall"],
])("%j is asked because: %s", (decision, why) => expect(whyAsked(decision as never)).toBe(why));
