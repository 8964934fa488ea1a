import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import AskOnce from "./AskOnce.svelte";

function setUp() {
  const onYes = vi.fn();
  render(AskOnce, { name: "Remove…", question: "Remove it?", yes: "Remove it", no: "Keep it", onYes });
  return { onYes, user: userEvent.setup(), opener: () => screen.getByRole("button", { name: "Remove…" }) };
}

it("asks first, with the way out in focus, and is back at the button afterwards", async () => {
  const { onYes, user, opener } = setUp();
  await user.click(opener());
  expect(screen.getByRole("alertdialog", { name: "Remove it?" })).toBeVisible();
  expect(screen.getByRole("button", { name: "Keep it" })).toHaveFocus();
  await user.keyboard("{Escape}");
  expect(opener()).toHaveFocus();
  expect(onYes).not.toHaveBeenCalled();
});

it("is answered by a click, and not by Enter", async () => {
  const { onYes, user, opener } = setUp();
  await user.click(opener());
  screen.getByRole("button", { name: "Remove it" }).focus();
  await user.keyboard("{Enter}");
  expect(onYes).not.toHaveBeenCalled();
  await user.click(screen.getByRole("button", { name: "Remove it" }));
  expect(onYes).toHaveBeenCalledOnce();
  expect(opener()).toBeVisible();
});
