import { spawn, type ChildProcess } from "node:child_process";
import { access, constants, stat } from "node:fs/promises";
import { isAbsolute, sep } from "node:path";
import { SallyportError } from "./errors.js";
import { longestReady, notReady, parseReady, type Ready } from "./ready.js";

/** How a child ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The refusal that it printed, where it printed one. */
  readonly refusal: { code: string; message: string } | undefined;
}

const longestLogLine = 8192;
/** After an end, how long the rest of the log may take: somebody else may hold the pipe. */
const logGrace = 1000;

/** Says why a program cannot be started, before anything is tried. */
export async function checkBinary(binary: string): Promise<void> {
  if (!isAbsolute(binary)) {
    throw new SallyportError("bad-option", "binary has to be an absolute path", {
      next: "a name alone would start whatever PATH has",
    });
  }
  if (binary.includes(".asar" + sep)) {
    throw new SallyportError("binary-in-archive", "the program lies inside an asar archive", {
      next: "ship it by extraResources and name it below process.resourcesPath",
    });
  }
  const info = await stat(binary).catch(() => undefined);
  if (!info?.isFile()) {
    throw new SallyportError("binary-missing", "there is no program at the path of binary");
  }
  try {
    await access(binary, constants.X_OK);
  } catch (cause) {
    throw notExecutable(cause);
  }
}

/** One `serve --companion`: its ready line, its log and its end. */
export class Child {
  /** The ready line, or why there is none. */
  readonly ready: Promise<Ready>;
  /** Never rejects. */
  readonly exited: Promise<Exit>;
  readonly #process: ChildProcess;
  #refusal: Exit["refusal"];

  constructor(binary: string, args: string[], env: NodeJS.ProcessEnv, log: (line: string) => void) {
    this.#process = spawn(binary, args, {
      env,
      stdio: ["pipe", "pipe", "pipe"],
      shell: false,
      windowsHide: true,
    });
    let failed: unknown;
    this.#process.on("error", (error) => {
      failed ??= error; // it could not be started, or could not be signalled
    });
    this.#process.stdin?.on("error", () => {}); // it ended before we let go
    this.exited = this.#wait();
    this.ready = this.#firstLine(() => failed);
    this.ready.catch(() => {}); // whoever waits for it hears of it
    this.#readLog(log);
  }

  /** Lets it end by itself, as its parent's end would, and makes it end after a time or at once when told so. */
  async end(within: number, signal?: AbortSignal): Promise<void> {
    this.#process.stdin?.end();
    const kill = () => void this.#process.kill("SIGKILL");
    const timer = setTimeout(kill, within);
    signal?.addEventListener("abort", kill, { once: true });
    if (signal?.aborted) {
      kill();
    }
    await this.exited;
    clearTimeout(timer);
    signal?.removeEventListener("abort", kill);
  }

  #wait(): Promise<Exit> {
    const child = this.#process;
    return new Promise((resolve) => {
      let done = false;
      const finish = () => {
        if (done) {
          return;
        }
        done = true;
        clearTimeout(timer);
        child.stdin?.destroy();
        child.stdout?.destroy();
        child.stderr?.destroy();
        resolve({ code: child.exitCode, signal: child.signalCode, refusal: this.#refusal });
      };
      let timer: NodeJS.Timeout | undefined;
      child.once("exit", () => {
        timer = setTimeout(finish, logGrace);
      });
      child.once("close", finish);
      child.once("error", () => {
        if (child.pid === undefined) {
          finish();
        }
      });
    });
  }

  #firstLine(failed: () => unknown): Promise<Ready> {
    return new Promise((resolve, reject) => {
      let text = "";
      const out = this.#process.stdout;
      const onData = (part: Buffer) => {
        text += part.toString("latin1");
        const end = text.indexOf("\n");
        if (end < 0 && text.length <= longestReady) {
          return;
        }
        out?.off("data", onData);
        out?.resume(); // there is nothing more, and what there is goes nowhere
        try {
          if (end < 0 || end > longestReady) {
            throw notReady();
          }
          resolve(parseReady(Buffer.from(text.slice(0, end), "latin1").toString("utf8")));
        } catch (error) {
          reject(error);
        }
      };
      out?.on("data", onData);
      void this.exited.then((exit) =>
        reject(failed() === undefined ? endedEarly(exit) : notExecutable(failed())),
      );
    });
  }

  #readLog(log: (line: string) => void): void {
    let rest = "";
    const line = (text: string) => {
      const refusal = /^sallyport: ([a-z0-9]+(?:-[a-z0-9]+)+): (.{1,500})$/.exec(text);
      if (refusal?.[1] !== undefined && refusal[2] !== undefined) {
        this.#refusal = { code: refusal[1], message: refusal[2] };
      }
      log(text);
    };
    const stream = this.#process.stderr?.setEncoding("utf8");
    stream?.on("data", (part: string) => {
      rest += part;
      for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
        line(rest.slice(0, Math.min(end, longestLogLine)).replace(/\r$/, ""));
        rest = rest.slice(end + 1);
      }
      if (rest.length > longestLogLine) {
        rest = rest.slice(0, longestLogLine); // the rest of the line is dropped
      }
    });
    stream?.on("end", () => {
      if (rest !== "") {
        line(rest);
      }
    });
  }
}

function endedEarly(exit: Exit): SallyportError {
  const how = exit.signal === null ? `with exit code ${exit.code}` : `by ${exit.signal}`;
  return new SallyportError(
    "start-failed",
    exit.refusal?.message ?? `the program ended ${how} before it was ready`,
    {
      reason: exit.refusal?.code,
    },
  );
}

function notExecutable(cause: unknown): SallyportError {
  const { code } = (cause ?? {}) as { code?: string }; // the message of the system's error holds the path
  return new SallyportError("binary-not-executable", "the program cannot be started", {
    reason: code,
    next: "check that it may be executed, and that it is for this system and processor",
  });
}
