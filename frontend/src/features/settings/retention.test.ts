import { expect, it } from "vitest";
import { less } from "./retention";

it("asks where either number gets smaller, and not where they grow", () => {
  const now = { days: 90, records: 1000 };
  expect(less({ days: 89, records: 5000 }, now)).toBe(true);
  expect(less({ days: 900, records: 999 }, now)).toBe(true);
  expect(less({ days: 90, records: 1000 }, now)).toBe(false);
  expect(less({ days: 91, records: 1001 }, now)).toBe(false);
});
