import { render, screen } from "@testing-library/svelte";
import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import Start from "./Start.svelte";

const notes = (state: string, reason = "") =>
  ({ id: "notes/main", plugin: "notes", server: "main", state, reason }) as Schemas["Connector"];
const agent = (all: boolean) =>
  ({ name: "claude", scope: { all, only: [] } }) as unknown as Schemas["Client"];
const given = {
  connectors: [notes("approval_required", "never-approved")],
  decisions: [],
  agents: [],
  calls: [],
};
const href = (name: RegExp) => screen.getByRole("link", { name }).getAttribute("href");

it("leads to the first plugin", () => {
  render(Start, given);
  expect(href(/Look at the first plugin: notes\/main/)).toBe("#/plugins/notes/main");
  expect(screen.getAllByRole("link")).toHaveLength(1);
});

it("leads to the installation of one where there is none", () => {
  render(Start, { ...given, connectors: [] });
  expect(href(/Install a plugin/)).toBe("#/plugins?install=");
});

it("leads back to a question that is open", () => {
  render(Start, {
    ...given,
    connectors: [notes("tools_required")],
    decisions: [{ id: "d-1", state: "open" } as Schemas["Decision"]],
  });
  expect(href(/Answer the question/)).toBe("#/review/d-1");
});

it("leads to the agents once a plugin is allowed, then says what to do in the agent", () => {
  const { unmount } = render(Start, { ...given, connectors: [notes("enabled")] });
  expect(href(/Connect an agent…/)).toBe("#/clients");
  unmount();
  const second = render(Start, { ...given, connectors: [notes("enabled")], agents: [agent(false)] });
  expect(href(/Choose what claude sees/)).toBe("#/clients/claude");
  second.unmount();
  render(Start, { ...given, connectors: [notes("enabled")], agents: [agent(true)] });
  expect(screen.queryByRole("link")).toBeNull();
  expect(screen.getByText(/ask it for something that the plugin does/)).toBeInTheDocument();
});

it("is gone once an agent called", () => {
  render(Start, {
    ...given,
    agents: [agent(true)],
    calls: [{ action: "call", via: "mcp" } as Schemas["AuditRecord"]],
  });
  expect(screen.queryByRole("heading")).toBeNull();
});
