import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { shownSteps } from "./trying";

const probe = (state: string, ...steps: [string, number][]): Schemas["Probe"] => ({
  decision: "d",
  state,
  revision: 1,
  ms: 0,
  stderr: [],
  steps: steps.map(([doing, ms]) => ({ doing, ms })),
});

it("shows what is done, under way and to come, with the time that passes meanwhile", () => {
  expect(shownSteps(probe("running", ["checking", 40], ["starting", 10]), 1500)).toEqual([
    { doing: "checking", state: "done", ms: 40 },
    { doing: "starting", state: "now", ms: 1510 },
    { doing: "handshake", state: "next" },
    { doing: "listing", state: "next" },
  ]);
});

it("shows that it is being stopped, and nothing to come", () => {
  expect(shownSteps(probe("running", ["checking", 1], ["starting", 1], ["stopping", 3]), 0).at(-1)).toEqual({
    doing: "stopping",
    state: "now",
    ms: 3,
  });
});

it("shows where it failed", () => {
  expect(
    shownSteps(probe("failed", ["checking", 1], ["starting", 1], ["handshake", 9], ["stopping", 3]), 0).map(
      (s) => [s.doing, s.state],
    ),
  ).toEqual([
    ["checking", "done"],
    ["starting", "done"],
    ["handshake", "failed"],
  ]);
});
