import { expect, it } from "vitest";
import { text } from "../../text";
import { choices, idleChoices, questionChoices } from "./times";

it("offers what holds now, in its place", () => {
  expect(choices(questionChoices, 10)).toEqual([...questionChoices]);
  expect(choices(questionChoices, 45)).toEqual([5, 10, 30, 45, 60, 240, 480, 1440]);
  expect(choices(idleChoices, 2880)).toEqual([5, 15, 30, 60, 240, 1440, 2880, 0]);
});

it.each([
  [0, "never"],
  [1, "1 minute"],
  [30, "30 minutes"],
  [60, "1 hour"],
  [90, "90 minutes"],
  [1440, "24 hours"],
])("says %i minutes as %s", (minutes, said) => {
  expect(text.settings.defaults.length(minutes)).toBe(said);
});
