import { resolve } from "node:path";
import { usualRestart, type Restart } from "./backoff.js";
import { SallyportError } from "./errors.js";

export interface Options {
  /** The absolute path of the sallyport program that you ship. */
  readonly binary: string;
  /**
   * A folder of your own for everything that Sallyport keeps. Without it the user's own is used, together with a
   * Sallyport that the user installed: plugins that were approved there are approved here too.
   */
  readonly dataDir?: string;
  /** The version that has to answer, exactly. Another one is ended, or not attached to. */
  readonly expectVersion?: string;
  /** The port from now on, instead of the kept one. Taken by another program, the start fails. */
  readonly port?: number;
  /** The environment of the program, instead of this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** How long a start may take, in milliseconds: 30 000 where nothing is said. */
  readonly startTimeout?: number;
  /** How long an end may take before it is made one: 20 000 where nothing is said. */
  readonly stopTimeout?: number;
  /** What happens when the sidecar ends by itself; false: nothing. */
  readonly restart?: Partial<Restart> | false;
  /** Gets each line of the sidecar's log, for your own. */
  readonly onLog?: (line: string) => void;
  /** Opens an address of sallyport:// in the desktop; in Electron `(url) => shell.openExternal(url)`. */
  readonly openExternal?: (url: string) => unknown;
  /** Its end is stop(). */
  readonly signal?: AbortSignal;
}

/** Options with nothing left out. */
export interface Settled {
  readonly binary: string;
  readonly dataDir: string | undefined;
  readonly expectVersion: string | undefined;
  readonly port: number | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly startTimeout: number;
  readonly stopTimeout: number;
  readonly restart: Restart;
  readonly onLog: (line: string) => void;
  readonly openExternal: ((url: string) => unknown) | undefined;
}

const longest = 2 ** 31 - 1; // what a timer takes

export function settle(options: Options): Settled {
  const { binary, dataDir, port, expectVersion, restart = {} } = options;
  if (typeof binary !== "string" || binary === "" || binary.includes("\0")) {
    throw bad("binary has to be the path of a program");
  }
  if (dataDir !== undefined && (typeof dataDir !== "string" || dataDir === "" || dataDir.includes("\0"))) {
    throw bad("dataDir has to be the path of a folder");
  }
  if (port !== undefined && !(Number.isInteger(port) && port >= 1024 && port <= 65535)) {
    throw bad("port has to be between 1024 and 65535");
  }
  const given = restart === false ? { attempts: 0 } : restart;
  const patience = { ...usualRestart, ...given };
  return {
    binary,
    dataDir: dataDir === undefined ? undefined : resolve(dataDir),
    expectVersion,
    port,
    env: { ...(options.env ?? process.env) },
    startTimeout: time("startTimeout", options.startTimeout ?? 30_000),
    stopTimeout: time("stopTimeout", options.stopTimeout ?? 20_000),
    restart: {
      attempts: count("restart.attempts", patience.attempts),
      firstDelay: time("restart.firstDelay", patience.firstDelay),
      longestDelay: time("restart.longestDelay", patience.longestDelay),
      steadyAfter: time("restart.steadyAfter", patience.steadyAfter),
    },
    onLog: options.onLog ?? (() => {}),
    openExternal: options.openExternal,
  };
}

function time(name: string, value: number): number {
  if (!(value >= 1 && value <= longest)) {
    throw bad(`${name} has to be a number of milliseconds above 0`);
  }
  return value;
}

function count(name: string, value: number): number {
  if (!(Number.isInteger(value) && value >= 0 && value <= 1000)) {
    throw bad(`${name} has to be a number from 0 to 1000`);
  }
  return value;
}

function bad(message: string): SallyportError {
  return new SallyportError("bad-option", message);
}
