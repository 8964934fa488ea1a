import { render, screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import Chart from "./Chart.svelte";
import { byDay } from "./days";

it("says what it shows, and has a table of the same", async () => {
  const now = new Date(2026, 4, 10, 12);
  const days = byDay([{ at: now.toISOString(), calls: 12, refused: 1, failed: 3 }], now);
  render(Chart, { days });
  expect(screen.getByRole("img", { name: /12 calls, 1 refusal\./ })).toBeVisible();
  await userEvent.click(screen.getByText("As a table"));
  const rows = screen.getAllByRole("row");
  expect(rows).toHaveLength(8);
  expect(
    within(rows[7]!)
      .getAllByRole("cell")
      .map((c) => c.textContent),
  ).toEqual(["12", "3", "1"]);
});
