import { render, screen, waitFor } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import type { Component } from "svelte";
import { beforeEach, expect, it, vi } from "vitest";
import Asking from "../../test/Asking.svelte";

/** What was sent, and the answer to come. The client takes fetch when it is made. */
const api = vi.hoisted(() => {
  const api = { sent: [] as unknown[], status: 200, answer: { ok: true } as unknown };
  globalThis.fetch = async (request) => {
    api.sent.push(JSON.parse(await (request as Request).text()));
    return new Response(JSON.stringify(api.answer), {
      status: api.status,
      headers: { "Content-Type": "application/json" },
    });
  };
  return api;
});
import ValueForm from "./ValueForm.svelte";

beforeEach(() => Object.assign(api, { sent: [], status: 200, answer: { ok: true } }));

function form(kept: string[], name?: string) {
  const onKept = vi.fn();
  const given = { name, kept: (n: string) => kept.includes(n), onKept, onClose: vi.fn() };
  render(Asking, { of: ValueForm as unknown as Component<Record<string, unknown>>, given });
  return { onKept, user: userEvent.setup(), value: screen.getByLabelText("Value") };
}

it("hides what is typed, sends it byte for byte and forgets it", async () => {
  const { onKept, user, value } = form([], "NOTES");
  expect(value).toHaveAttribute("type", "password");
  expect(value).toHaveFocus();
  await user.type(value, "grüß{Enter}");
  await waitFor(() => expect(onKept).toHaveBeenCalledWith("NOTES"));
  expect(api.sent).toEqual([{ name: "NOTES", value: "Z3LDvMOf" }]);
  expect(value).toHaveValue("");
});

it("says that a value is replaced, and does it by a click and by no Enter", async () => {
  const { onKept, user, value } = form(["NOTES"], "NOTES");
  expect(screen.getByText(/cannot be brought back/)).toBeInTheDocument();
  await user.type(value, "new{Enter}");
  await user.tab();
  await user.tab();
  expect(screen.getByRole("button", { name: "Replace the value" })).toHaveFocus();
  await user.keyboard("{Enter}");
  expect(api.sent).toEqual([]);
  await user.click(screen.getByRole("button", { name: "Replace the value" }));
  await waitFor(() => expect(onKept).toHaveBeenCalledOnce());
});

it("takes no name that is none, and sees that one is kept already", async () => {
  const { user, value } = form(["NOTES"]);
  const name = screen.getByLabelText("Name");
  await user.type(value, "x");
  await user.type(name, "two words");
  expect(screen.getByRole("button", { name: "Keep it" })).toBeDisabled();
  await user.clear(name);
  await user.type(name, "NOTES");
  expect(screen.getByRole("button", { name: "Replace the value" })).toBeEnabled();
});

it("shows a refusal with its next step, and keeps what was typed for another try", async () => {
  Object.assign(api, {
    status: 409,
    answer: { code: "keyring-locked", message: "the keyring is locked", details: { next: "unlock it" } },
  });
  const { onKept, user, value } = form([], "NOTES");
  await user.type(value, "v{Enter}");
  expect(await screen.findByText("the keyring is locked")).toBeInTheDocument();
  expect(screen.getByText(/unlock it/)).toBeInTheDocument();
  expect(value).toHaveValue("v");
  expect(onKept).not.toHaveBeenCalled();
});
