import { Refusal, type Schemas } from "../../api/client";

type Probe = Schemas["Probe"];
export type Step = { doing: string; state: "done" | "now" | "failed" | "next"; ms?: number };

/** The steps of every first try; "stopping" is shown only while it happens. */
const all = ["checking", "starting", "handshake", "listing"];

/** What is done, under way and to come. late is how long ago the probe was looked at, in milliseconds. */
export function shownSteps(probe: Probe, late: number): Step[] {
  const over = probe.state !== "running";
  const begun = over ? probe.steps.filter((s) => s.doing !== "stopping") : probe.steps;
  const steps: Step[] = begun.map((step, at) => {
    const last = at === begun.length - 1;
    if (!last || probe.state === "done") return { doing: step.doing, state: "done", ms: step.ms };
    return over
      ? { doing: step.doing, state: "failed", ms: step.ms }
      : { doing: step.doing, state: "now", ms: step.ms + late };
  });
  const stopping = !over && probe.steps.at(-1)?.doing === "stopping";
  if (stopping || over) return steps;
  return [...steps, ...all.slice(begun.length).map((doing): Step => ({ doing, state: "next" }))];
}

/** Why it came to nothing, as a refusal that can be shown. */
export function reasonOf(error: Schemas["Error"]): Refusal {
  return new Refusal(409, error);
}
