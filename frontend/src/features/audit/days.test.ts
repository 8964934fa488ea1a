import { describe, expect, it } from "vitest";
import { byDay, height, since, total } from "./days";

const now = new Date(2026, 4, 10, 15, 30);
const hour = (day: number, at: number, calls: number, refused = 0) => ({
  at: new Date(2026, 4, day, at).toISOString(),
  calls,
  refused,
  failed: 0,
});

describe("the last seven days", () => {
  it("begin at a midnight of this computer's", () => {
    expect(new Date(since(now))).toEqual(new Date(2026, 4, 4));
    expect(since(now)).toMatch(/:00Z$/);
  });
  it("add up their hours, and days without any are there", () => {
    const days = byDay([hour(4, 0, 1), hour(9, 23, 2, 1), hour(10, 0, 3), hour(10, 14, 4, 2)], now);
    expect(days.map((d) => d.calls)).toEqual([1, 0, 0, 0, 0, 2, 7]);
    expect(days.map((d) => d.refused)).toEqual([0, 0, 0, 0, 0, 1, 2]);
    expect(total(days, "calls")).toBe(10);
  });
  it("leave out what was before", () => {
    expect(total(byDay([hour(3, 23, 5)], now), "calls")).toBe(0);
  });
});

describe("a bar", () => {
  it("is seen beside much larger ones, and is nothing for nothing", () => {
    expect(height(1, 100_000, 80)).toBe(2);
    expect(height(0, 10, 80)).toBe(0);
    expect(height(0, 0, 80)).toBe(0);
    expect(height(10, 10, 80)).toBe(80);
  });
});
