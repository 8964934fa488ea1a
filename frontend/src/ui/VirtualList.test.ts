import { render, screen } from "@testing-library/svelte";
import { createRawSnippet } from "svelte";
import { expect, it } from "vitest";
import VirtualList from "./VirtualList.svelte";

it("keeps only what is in sight of a hundred thousand rows", () => {
  const items = Array.from({ length: 100_000 }, (_, at) => at);
  const row = createRawSnippet<[number]>((item) => ({ render: () => `<span>row ${item()}</span>` }));
  render(VirtualList<number>, { items, rowHeight: 50, label: "Rows", key: String, row });
  const shown = screen.getAllByRole("listitem");
  expect(shown.length).toBeLessThan(60);
  expect(shown[0]).toHaveAttribute("aria-setsize", "100000");
});
