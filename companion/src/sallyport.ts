import { setTimeout as sleep } from "node:timers/promises";
import { delayBefore } from "./backoff.js";
import { Child, checkBinary, type Exit } from "./child.js";
import {
  oneDecision,
  openDecisions,
  watchDecisions,
  type Ask,
  type Decision,
  type DecisionChange,
} from "./decisions.js";
import { isFinal, SallyportError } from "./errors.js";
import { settle, type Options, type Settled } from "./options.js";
import { readKeys, stateFolder } from "./places.js";
import { dial, type Health, type Place } from "./prove.js";
import type { Ready } from "./ready.js";
import { get } from "./request.js";
import { checkID, homeArgs, openInBrowser, openInWindow } from "./review.js";
import type { components } from "./schema.js";
import { StateBoard, type Note, type Running, type State, type StateName } from "./state.js";

export type Status = components["schemas"]["Status"];

/** A signal that gives a wait up. Whatever waits then ends with the signal's own reason. */
export interface Wait {
  readonly signal?: AbortSignal;
}

/** One child that is ready, and how the sidecar behind it is reached. */
interface Link {
  readonly child: Child;
  readonly ready: Ready;
  readonly place: Place;
  readonly token: string;
  readonly notes: readonly Note[];
}

/**
 * One Sallyport for this program. It always starts the program as a child, which is the sidecar, or, where one has the
 * data folder already, stands beside that one and ends with it; so there is one way of starting and of ending.
 */
export class Sallyport {
  readonly #options: Settled;
  readonly #board = new StateBoard();
  readonly #outer: AbortSignal | undefined;
  #life: AbortController | undefined; // of one start() to its end
  #hurry = new AbortController(); // ends the patience with a child that does not end
  #starting: Promise<void> | undefined;
  #keeping: Promise<void> = Promise.resolve();
  #link: Link | undefined;

  constructor(options: Options) {
    this.#options = settle(options);
    this.#outer = options.signal;
  }

  get state(): State {
    return this.#board.now;
  }

  /** Calls listener at every change from now on, and returns what ends that. */
  onState(listener: (state: State) => void): () => void {
    return this.#board.listen(listener);
  }

  /** Waits for one of the states; the present one counts. */
  until<N extends StateName>(names: readonly N[], wait: Wait = {}): Promise<Extract<State, { name: N }>> {
    return this.#board.until(names, wait.signal);
  }

  /**
   * Starts the sidecar, or attaches to the one that runs, and returns once it has proved itself. What does not get so
   * far leaves nothing behind. While it starts or runs, a further start() is the same one.
   */
  start(wait: Wait = {}): Promise<void> {
    if (this.#life?.signal.aborted) {
      return this.stop().then(() => this.start(wait)); // it is being stopped just now
    }
    if (this.#life === undefined) {
      this.#starting = this.#begin(wait.signal);
      this.#starting.catch(() => {}); // a further start() may ask for it
    }
    return this.#starting ?? Promise.resolve();
  }

  /**
   * Ends what start() started, its plugins included, and leaves a sidecar that was there before. It returns when all is
   * gone. Its signal ends the patience, not the stopping.
   */
  async stop(wait: Wait = {}): Promise<void> {
    const life = this.#life;
    life?.abort(new SallyportError("stopped", "Sallyport was stopped"));
    const onHurry = () => this.#hurry.abort();
    wait.signal?.addEventListener("abort", onHurry, { once: true });
    if (wait.signal?.aborted) {
      onHurry();
    }
    await Promise.allSettled([this.#starting, this.#end()]);
    await this.#keeping;
    wait.signal?.removeEventListener("abort", onHurry);
    if (this.#life === life) {
      this.#life = undefined;
      this.#set({ name: "stopped" });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Whether the sidecar is well, asked of it and proved. */
  async health(wait: Wait = {}): Promise<Health> {
    const { socket, health } = await dial(this.#reach().place, wait.signal);
    socket.destroy();
    return health;
  }

  /** The whole at a glance: problems, connectors by state, what waits for an answer. */
  status(wait: Wait = {}): Promise<Status> {
    return this.#ask<Status>("/v1/status", wait.signal);
  }

  /** The questions that wait for a person, newest first. */
  decisions(wait: Wait = {}): Promise<Decision[]> {
    return openDecisions(this.#ask, wait.signal);
  }

  async decision(id: string, wait: Wait = {}): Promise<Decision> {
    checkID(id);
    return oneDecision(this.#ask, id, wait.signal);
  }

  /**
   * Tells of every open question, and then of what changes, through restarts. It ends with stop(), and throws when the
   * sidecar is given up.
   */
  watchDecisions(wait: Wait = {}): AsyncGenerator<DecisionChange, void, void> {
    return watchDecisions(this.#ask, this.#board, wait.signal);
  }

  /**
   * Shows a person a question, or all of them: in the browser, or in the installed window. This program itself cannot
   * answer one.
   */
  async openReview(id?: string, wait: Wait & { in?: "browser" | "window" } = {}): Promise<void> {
    if (id !== undefined) {
      checkID(id);
    }
    this.#reach();
    wait.signal?.throwIfAborted();
    await (wait.in === "window"
      ? openInWindow(this.#options, id)
      : openInBrowser(this.#options, id, wait.signal));
  }

  readonly #ask: Ask = async (path, signal) => {
    const { place, token } = this.#reach();
    const ends = [signal, this.#life?.signal].filter((one) => one !== undefined);
    return get(place, token, path, AbortSignal.any(ends)); // stop() ends a poll of a sidecar that goes on
  };

  #reach(): Link {
    const { name } = this.#board.now;
    if (this.#link === undefined || (name !== "ready" && name !== "attached")) {
      throw new SallyportError("not-running", "no sidecar runs now");
    }
    return this.#link;
  }

  #set(state: State): void {
    this.#board.set(state);
  }

  async #begin(signal: AbortSignal | undefined): Promise<void> {
    const life = new AbortController();
    this.#life = life;
    this.#hurry = new AbortController();
    this.#set({ name: "starting" });
    const onOuter = () => void this.stop();
    this.#outer?.addEventListener("abort", onOuter, { once: true });
    life.signal.addEventListener("abort", () => this.#outer?.removeEventListener("abort", onOuter), {
      once: true,
    });
    try {
      const ends = [life.signal, signal, this.#outer].filter((one) => one !== undefined);
      const link = await this.#firstTry(AbortSignal.any(ends));
      await this.#unwanted(link, life.signal);
      this.#ready(link);
      this.#keeping = this.#keep(link, life.signal);
    } catch (error) {
      this.#outer?.removeEventListener("abort", onOuter);
      if (life.signal.aborted) {
        throw this.#outer?.aborted ? this.#outer.reason : life.signal.reason; // stop() says how it stands
      }
      this.#life = undefined;
      this.#set(
        error instanceof SallyportError ? { name: "failed", reason: error } : { name: "stopped" }, // given up by its signal
      );
      throw error;
    }
  }

  /** A sidecar that was attached to may have been about to end; everything else is the caller's to know. */
  async #firstTry(signal: AbortSignal): Promise<Link> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#try(signal);
      } catch (error) {
        const gone = error instanceof SallyportError && error.code === "not-running";
        if (!gone || attempt > this.#options.restart.attempts) {
          throw error;
        }
        await sleep(delayBefore(attempt, this.#options.restart), undefined, { signal }).catch(() => {});
        signal.throwIfAborted();
      }
    }
  }

  /** One start, up to the proof. What does not get so far is ended before the error is thrown. */
  async #try(outer: AbortSignal): Promise<Link> {
    await checkBinary(this.#options.binary);
    outer.throwIfAborted();
    const { dataDir, env, port, onLog, startTimeout } = this.#options;
    const args = ["serve", "--companion", ...homeArgs(this.#options)];
    if (port !== undefined) {
      args.push("--port", String(port));
    }
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new SallyportError("start-timeout", "the program was not ready in time")),
      startTimeout,
    );
    const signal = AbortSignal.any([outer, late.signal]);
    const child = this.#spawn(args, env, onLog);
    try {
      const ready = await unless(signal, child.ready);
      const keys = await readKeys(stateFolder(dataDir, env));
      const place = { port: ready.port, instance: ready.instance, key: keys.health };
      const { socket, health } = await dial(place, signal);
      socket.destroy();
      this.#checkVersion(ready, health);
      return { child, ready, place, token: keys.token, notes: await this.#notes(place, keys.token, signal) };
    } catch (error) {
      await this.#endChild(child);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #spawn(args: string[], env: NodeJS.ProcessEnv, onLog: (line: string) => void): Child {
    try {
      return new Child(this.#options.binary, args, env, onLog);
    } catch (cause) {
      const { code } = cause as { code?: string };
      throw new SallyportError("binary-not-executable", "the program cannot be started", { reason: code });
    }
  }

  #checkVersion(ready: Ready, health: Health): void {
    const want = this.#options.expectVersion;
    if (want !== undefined && (health.version !== want || ready.version !== want)) {
      const whose = ready.attached ? "the Sallyport that runs already" : "the program";
      throw new SallyportError("version-mismatch", `${whose} is ${ready.version}, not ${want}`, {
        next: ready.attached ? "end it, or bring it to that version" : "ship the version that is expected",
      });
    }
  }

  /** What the sidecar has to say of its address. One that cannot say it is no worse for that. */
  async #notes(place: Place, token: string, signal: AbortSignal): Promise<Note[]> {
    try {
      const { problems } = await get<Status>(place, token, "/v1/status", signal);
      return (problems ?? [])
        .filter(({ code }) => code.startsWith("port-"))
        .map(({ code, text }) => ({ code, text }));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof SallyportError && error.code === "not-running") {
        throw error;
      }
      return [];
    }
  }

  #ready(link: Link): void {
    this.#link = link;
    const { url, port, instance, version, pid, attached } = link.ready;
    const running: Running = { url, port, instance, version, pid, notes: link.notes };
    this.#set({ name: attached ? "attached" : "ready", ...running });
  }

  /** Watches one child after the other until stop(), or until it gives up. */
  async #keep(first: Link, life: AbortSignal): Promise<void> {
    let link: Link | undefined = first;
    let attempt = 0;
    while (link !== undefined) {
      const since = performance.now();
      const exit: Exit = await link.child.exited;
      if (life.aborted) {
        return;
      }
      if (performance.now() - since >= this.#options.restart.steadyAfter) {
        attempt = 0;
      }
      const ended = endedByItself(exit, link.ready.attached);
      this.#link = undefined;
      [link, attempt] = await this.#again(ended, attempt, life);
    }
  }

  /** Tries until a sidecar is ready again; without one it has given up, or stop() was called. */
  async #again(why: SallyportError, attempt: number, life: AbortSignal): Promise<[Link | undefined, number]> {
    const { restart } = this.#options;
    let reason = why;
    for (;;) {
      attempt++;
      if (attempt > restart.attempts) {
        return [
          this.#giveUp(
            new SallyportError("gave-up", "Sallyport ended and did not come back", {
              reason: reason.reason ?? reason.code,
              next: "see its log, and start again",
              cause: reason,
            }),
          ),
          attempt,
        ];
      }
      const delay = delayBefore(attempt, restart);
      this.#set({ name: "restarting", attempt, delay, reason });
      try {
        await sleep(delay, undefined, { signal: life });
        const link = await this.#try(life);
        await this.#unwanted(link, life);
        this.#ready(link);
        return [link, attempt];
      } catch (error) {
        if (life.aborted) {
          return [undefined, attempt];
        }
        reason =
          error instanceof SallyportError
            ? error
            : new SallyportError("start-failed", "it cannot be started", { cause: error });
        if (isFinal(reason)) {
          return [this.#giveUp(reason), attempt];
        }
      }
    }
  }

  #giveUp(reason: SallyportError): undefined {
    this.#life?.abort(reason);
    this.#life = undefined;
    this.#set({ name: "failed", reason });
  }

  /** Ends a child that became ready at the moment of a stop(). */
  async #unwanted(link: Link, life: AbortSignal): Promise<void> {
    if (life.aborted) {
      await this.#endChild(link.child);
      throw life.reason;
    }
  }

  async #end(): Promise<void> {
    const link = this.#link;
    this.#link = undefined;
    if (link !== undefined) {
      await this.#endChild(link.child);
    }
  }

  #endChild(child: Child): Promise<void> {
    return child.end(this.#options.stopTimeout, this.#hurry.signal);
  }
}

/** A Sallyport that is ready. */
export async function startSallyport(options: Options): Promise<Sallyport> {
  options.signal?.throwIfAborted();
  const sallyport = new Sallyport(options);
  await sallyport.start();
  return sallyport;
}

function endedByItself(exit: Exit, attached: boolean): SallyportError {
  if (attached && exit.refusal?.code === "not-running") {
    return new SallyportError("exited", "the Sallyport that was attached to has ended", {
      reason: "not-running",
    });
  }
  const how = exit.signal === null ? `with exit code ${exit.code}` : `by ${exit.signal}`;
  return new SallyportError("exited", `the sidecar ended ${how}`, { reason: exit.refusal?.code });
}

/** What is waited for, or the signal's reason, whichever is first. */
function unless<T>(signal: AbortSignal, waited: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) {
      onAbort();
    }
    waited.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
