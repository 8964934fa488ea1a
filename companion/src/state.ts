import type { SallyportError } from "./errors.js";

/** A running sidecar that has proved itself. */
export interface Running {
  readonly url: string;
  readonly port: number;
  readonly instance: string;
  readonly version: string;
  readonly pid: number;
  /** What is to know of the address: "port-changed" where another program had the kept port. */
  readonly notes: readonly Note[];
}

export interface Note {
  readonly code: string;
  readonly text: string;
}

/** How it stands. */
export type State =
  | { readonly name: "starting" }
  /** A sidecar of our own runs. */
  | ({ readonly name: "ready" } & Running)
  /** The sidecar was there before; stop() leaves it. */
  | ({ readonly name: "attached" } & Running)
  /** It ended by itself; the next attempt comes in `delay` milliseconds. */
  | {
      readonly name: "restarting";
      readonly attempt: number;
      readonly delay: number;
      readonly reason: SallyportError;
    }
  /** Nothing runs and nothing is tried any more. start() begins anew. */
  | { readonly name: "failed"; readonly reason: SallyportError }
  | { readonly name: "stopped" };

export type StateName = State["name"];

/** The present state, and whoever wants to hear of the next. */
export class StateBoard {
  #now: State = { name: "stopped" };
  readonly #listeners = new Set<(state: State) => void>();

  get now(): State {
    return this.#now;
  }

  set(state: State): void {
    this.#now = state;
    for (const listener of [...this.#listeners]) {
      // Later and by itself: one that throws harms neither us nor the others.
      queueMicrotask(() => {
        if (this.#listeners.has(listener)) {
          listener(state);
        }
      });
    }
  }

  listen(listener: (state: State) => void): () => void {
    const own = (state: State) => listener(state);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Waits for one of the states; the present one counts. */
  until<N extends StateName>(
    names: readonly N[],
    signal?: AbortSignal,
  ): Promise<Extract<State, { name: N }>> {
    return new Promise((resolve, reject) => {
      const stop = this.listen((state) => look(state));
      const onAbort = () => {
        stop();
        reject(signal?.reason);
      };
      const look = (state: State) => {
        if ((names as readonly StateName[]).includes(state.name)) {
          stop();
          signal?.removeEventListener("abort", onAbort);
          resolve(state as Extract<State, { name: N }>);
        }
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) {
        onAbort();
        return;
      }
      look(this.#now);
    });
  }
}
