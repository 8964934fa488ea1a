import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import Confirm from "./Confirm.svelte";

function asked() {
  const onYes = vi.fn();
  const onNo = vi.fn();
  render(Confirm, { question: "Delete it?", yes: "Delete", no: "Keep", onYes, onNo });
  return { onYes, onNo, user: userEvent.setup() };
}

it("asks in words that name the group, and the way out has the focus", () => {
  asked();
  expect(screen.getByRole("alertdialog", { name: "Delete it?" })).toBeInTheDocument();
  expect(screen.getByRole("button", { name: "Keep" })).toHaveFocus();
});

it("takes a click for a yes, and no Enter", async () => {
  const { onYes, user } = asked();
  await user.tab();
  expect(screen.getByRole("button", { name: "Delete" })).toHaveFocus();
  await user.keyboard("{Enter}");
  expect(onYes).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Delete" }));
  expect(onYes).toHaveBeenCalledOnce();
});

it.each(["{Enter}", "{Escape}"])("is left by %s", async (key) => {
  const { onYes, onNo, user } = asked();
  await user.keyboard(key);
  expect(onNo).toHaveBeenCalledOnce();
  expect(onYes).not.toHaveBeenCalled();
});

it("shows what is hidden in a name", () => {
  render(Confirm, { question: "Delete a\u202eb?", yes: "Delete", no: "Keep", onYes: vi.fn(), onNo: vi.fn() });
  expect(screen.getByText("U+202E")).toBeInTheDocument();
});
