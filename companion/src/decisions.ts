import { setTimeout as sleep } from "node:timers/promises";
import { isFinal, SallyportError } from "./errors.js";
import type { components } from "./schema.js";
import type { StateBoard } from "./state.js";

export type Decision = components["schemas"]["Decision"];
type EventPage = components["schemas"]["EventPage"];

/** A question was opened, or is one no more (answered, over, or another took its place). */
export type DecisionChange =
  | { readonly type: "opened"; readonly decision: Decision }
  | { readonly type: "closed"; readonly decision: Decision };

/** How the sidecar that runs at the moment is asked. */
export type Ask = <T>(path: string, signal?: AbortSignal) => Promise<T>;

const poll = "50s";
/** After a failure, in milliseconds: at first, and at most. */
const firstPause = 250;
const longestPause = 10_000;

/**
 * Tells of every open question, and then of what changes. Events say only that something changed; what is told comes
 * from the list of what is open, so that nothing is missed by a restart or told twice.
 */
export async function* watchDecisions(
  ask: Ask,
  board: StateBoard,
  signal?: AbortSignal,
): AsyncGenerator<DecisionChange, void, void> {
  const known = new Map<string, Decision>();
  let pause = firstPause;
  for (;;) {
    signal?.throwIfAborted();
    const state = await board.until(["ready", "attached", "failed", "stopped"], signal);
    if (state.name === "stopped") {
      return;
    }
    if (state.name === "failed") {
      throw state.reason;
    }
    try {
      yield* watchOne(ask, known, () => (pause = firstPause), signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (isFinal(error) || !(error instanceof SallyportError)) {
        throw error;
      }
      // What ended is about to be noticed; a sidecar that refuses is not asked again and again.
      await sleep(pause, undefined, signal && { signal }).catch(() => {});
      pause = Math.min(2 * pause, longestPause);
    }
  }
}

/** Follows one instance until it ends, which is an error. */
async function* watchOne(
  ask: Ask,
  known: Map<string, Decision>,
  isWell: () => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<DecisionChange, void, void> {
  let { last } = await ask<EventPage>("/v1/events", signal);
  let look = true;
  for (;;) {
    if (look) {
      yield* changes(ask, known, signal);
    }
    isWell();
    const page = await ask<EventPage>(`/v1/events?after=${last}&wait=${poll}`, signal);
    last = page.last;
    look = !page.complete || (page.events ?? []).some((event) => event.kind === "decision");
  }
}

async function* changes(
  ask: Ask,
  known: Map<string, Decision>,
  signal: AbortSignal | undefined,
): AsyncGenerator<DecisionChange, void, void> {
  const list = await openDecisions(ask, signal);
  const now = new Map(list.map((decision) => [decision.id, decision]));
  for (const id of [...known.keys()]) {
    if (!now.has(id)) {
      const decision = await closed(ask, id, signal);
      const before = known.get(id) as Decision;
      known.delete(id);
      yield { type: "closed", decision: decision ?? { ...before, state: "closed" } };
    }
  }
  for (const decision of now.values()) {
    if (!known.has(decision.id)) {
      known.set(decision.id, decision);
      yield { type: "opened", decision };
    }
  }
}

/** How a question ended; one that the sidecar knows no more ended as well. */
async function closed(ask: Ask, id: string, signal?: AbortSignal): Promise<Decision | undefined> {
  try {
    return await oneDecision(ask, id, signal);
  } catch (error) {
    if (error instanceof SallyportError && error.code === "refused") {
      return undefined;
    }
    throw error;
  }
}

export async function openDecisions(ask: Ask, signal?: AbortSignal): Promise<Decision[]> {
  const { decisions } = await ask<components["schemas"]["DecisionList"]>("/v1/decisions?open=true", signal);
  return decisions ?? [];
}

export function oneDecision(ask: Ask, id: string, signal?: AbortSignal): Promise<Decision> {
  return ask<Decision>(`/v1/decisions/${encodeURIComponent(id)}`, signal);
}
