import { render, screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";
import type { Component } from "svelte";
import Asking from "../../test/Asking.svelte";

// The client takes fetch as it finds it.
const net = vi.hoisted(() => {
  const net = { sent: [] as string[], answered: (_: Request): Response => Response.error() };
  globalThis.fetch = (given) => Promise.resolve(net.answered(given as Request));
  return net;
});
import Plugins from "./Plugins.svelte";

const line = {
  id: "notes/main",
  plugin: "notes",
  server: "main",
  state: "enabled",
  reason: "",
  version: "1.0.0",
  digest: "a1:00",
  source: "data/plugins/notes",
  format: "agent-plugins-1.0.0",
  transport: "stdio",
  tools: 1,
  running: false,
};
const detail = {
  ...line,
  declares: {
    args: [],
    env: [],
    inherit: [],
    headers: [],
    tools: [],
    prompts: [],
    runtimes: [],
    description: "a\u202eb",
  },
  mayTouch: { tools: ["*"], net: [], secrets: [], fs: [], words: [] },
  did: { audit: "", recent: [] },
  approved: {
    identity: "i1:0",
    digest: "a1:00",
    version: "1.0.0",
    by: "me",
    via: "cli",
    at: new Date().toISOString(),
    tools: ["echo"],
  },
  provides: { tools: [], prompts: [], resourceTemplates: [], skills: [], diagnostics: [] },
  changes: [],
  problems: [],
};
const answers: Record<string, unknown> = {
  "/v1/plugins": { connectors: [line], problems: [] },
  "/v1/plugins/notes/main": detail,
  "/v1/plugins/notes/main/files": {
    id: "notes/main",
    digest: "a1:01",
    approved: "a1:00",
    leftOut: 0,
    entries: [
      { path: "bin", kind: "folder", size: 0 },
      { path: "bin/tool", kind: "file", size: 10, executable: true, sum: "00" },
      { path: "notice.txt", kind: "file", size: 2048, change: "modified", sum: "01" },
    ],
  },
  "/v1/plugins/notes/main/file": {
    path: "notice.txt",
    kind: "file",
    size: 2048,
    sum: "01",
    copy: "now",
    text: "hello\u200b",
    left: "",
  },
  "/v1/plugins/notes/main/log": { id: "notes/main", lines: ["one", "\u001b[2J two"] },
  "/v1/policy": { rules: [], standing: [], approved: ["notes/main:echo"] },
  "POST /v1/plugins/notes/main/disable": { ...line, state: "disabled" },
  "POST /v1/plugins/notes/main/enable": line,
  "POST /v1/plugins/notes/main/revoke": line,
};
function answered(request: Request): Response {
  const { pathname, search } = new URL(request.url);
  net.sent.push(`${request.method} ${pathname}${search}`);
  const found = answers[`${request.method} ${pathname}`] ?? answers[pathname];
  return found === undefined
    ? Response.json({ code: "plugin-unknown", message: "there is none", details: {} }, { status: 404 })
    : Response.json(found);
}

beforeEach(() => {
  net.sent.length = 0;
  net.answered = answered;
});

async function at(address: string): Promise<ReturnType<typeof userEvent.setup>> {
  location.hash = address;
  dispatchEvent(new HashChangeEvent("hashchange"));
  render(Asking, { of: Plugins as unknown as Component<Record<string, unknown>> });
  return userEvent.setup();
}

it("shows the part that the address names, and arrow keys lead on", async () => {
  const user = await at("/plugins/notes/main/files");
  const files = await screen.findByRole("tab", { name: "Files" });
  expect(files).toHaveAttribute("aria-selected", "true");
  expect(await screen.findByText(/1 differs from the approved copy/)).toBeVisible();
  files.focus();
  await user.keyboard("{ArrowRight}");
  expect(screen.getByRole("tab", { name: "Skills" })).toHaveFocus();
  expect(location.hash).toBe("#/plugins/notes/main/skills");
  expect(screen.getByText("It has no skills and no prompts.")).toBeVisible();
});

it("lists files with what is special about them, and shows one as marked text", async () => {
  const user = await at("/plugins/notes/main/files");
  const list = await screen.findByRole("region", { name: "Files" });
  expect(within(list).getAllByRole("listitem")).toHaveLength(2);
  expect(within(list).getByRole("button", { name: /bin\/tool executable/ })).toBeVisible();
  await user.click(within(list).getByRole("button", { name: /notice\.txt modified/ }));
  expect(await screen.findByText("U+200B")).toBeVisible();
  expect(net.sent).toContain("GET /v1/plugins/notes/main/file?path=notice.txt&copy=now");
  await user.click(screen.getByRole("button", { name: "As approved" }));
  expect(net.sent).toContain("GET /v1/plugins/notes/main/file?path=notice.txt&copy=approved");
});

it("says what a click did, and takes it back", async () => {
  const user = await at("/plugins/notes/main");
  await user.click(await screen.findByRole("button", { name: "Disable" }));
  expect(await screen.findByText("It does not run until you enable it.")).toBeVisible();
  await user.click(await screen.findByRole("button", { name: "Undo" }));
  expect(await screen.findByText("It may run again.")).toBeVisible();
  expect(net.sent).toContain("POST /v1/plugins/notes/main/enable");
});

it("asks before it ends an approval, and keeps what it has stored unless somebody says otherwise", async () => {
  const user = await at("/plugins/notes/main");
  await user.click(await screen.findByRole("button", { name: "Revoke…" }));
  expect(screen.getByRole("alertdialog", { name: /Revoke the approval of notes\/main/ })).toBeVisible();
  expect(screen.getByRole("button", { name: "Cancel" })).toHaveFocus();
  await user.keyboard("{Escape}");
  expect(net.sent.some((request) => request.startsWith("POST"))).toBe(false);
  expect(screen.getByRole("radio", { name: "Keep it" })).toBeChecked();
});

it("marks what is invisible in an error output, and stops at a word", async () => {
  const user = await at("/plugins/notes/main/logs");
  expect(await screen.findByText("U+001B")).toBeVisible();
  await user.click(screen.getByRole("button", { name: "Pause" }));
  expect(screen.getByText(/newer lines are not shown/)).toBeVisible();
  await user.type(screen.getByRole("searchbox", { name: "Search the lines" }), "absent");
  expect(screen.getByText("No line matches.")).toBeVisible();
});

it("says of each permission whether it is enforced", async () => {
  await at("/plugins/notes/main/permissions");
  expect(await screen.findAllByText("not enforced")).toHaveLength(2);
  expect(await screen.findByText("notes/main")).toBeVisible();
});

it("filters the list, and keeps the filter in the address", async () => {
  const user = await at("/plugins");
  const search = await screen.findByRole("searchbox", { name: "Search" });
  await user.type(search, "zzz");
  expect(screen.getByText("Nothing matches the search.")).toBeVisible();
  expect(location.hash).toBe("#/plugins?search=zzz");
  await user.click(screen.getByRole("button", { name: "Show all" }));
  expect(screen.getByRole("link", { name: /notes\/main/ })).toHaveAttribute("href", "#/plugins/notes/main");
});

it("installs nothing before it knows from where, and says what cannot be found", async () => {
  const user = await at("/plugins?install=");
  expect(screen.getByRole("button", { name: "Look at it…" })).toBeDisabled();
  expect(screen.getByRole("textbox", { name: "Path of the folder" })).toHaveFocus();
  await user.click(screen.getByRole("radio", { name: "An npm package" }));
  await user.type(screen.getByRole("textbox", { name: "Name of the package" }), "notes");
  expect(screen.getByRole("button", { name: "Look at it…" })).toBeDisabled();
  await user.type(screen.getByRole("textbox", { name: "Exact version" }), "1.2.3");
  await user.click(screen.getByRole("button", { name: "Look at it…" }));
  expect(await screen.findByRole("alert")).toHaveTextContent("there is none");
});
