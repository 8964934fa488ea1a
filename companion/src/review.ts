import { spawn } from "node:child_process";
import { SallyportError } from "./errors.js";
import type { Settled } from "./options.js";

const openWithin = 30_000;

/** Whether a text is the id of a decision, so that nothing else becomes part of a command line or an address. */
export function checkID(id: string): void {
  if (typeof id !== "string" || !/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id)) {
    throw new SallyportError("bad-option", "that is no id of a decision");
  }
}

/** Raises the installed window at a question, by its address. */
export async function openInWindow(options: Settled, id: string | undefined): Promise<void> {
  if (options.openExternal === undefined) {
    throw new SallyportError("bad-option", "openExternal is needed to reach the window");
  }
  try {
    await options.openExternal(id === undefined ? "sallyport://open" : `sallyport://review/${id}`);
  } catch (cause) {
    throw new SallyportError("cannot-open", "the window cannot be reached", { cause });
  }
}

/**
 * Has the program open the pages in the browser. It makes the one-time link and hands it to the browser itself: whoever
 * has that link can answer, so it never comes by here.
 */
export function openInBrowser(options: Settled, id: string | undefined, signal?: AbortSignal): Promise<void> {
  const args = ["open", "--no-start", ...(id === undefined ? [] : ["--review", id]), ...homeArgs(options)];
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const child = spawn(options.binary, args, {
      env: options.env,
      stdio: ["ignore", "ignore", "pipe"],
      shell: false,
      windowsHide: true,
    });
    let said = "";
    const kill = () => void child.kill("SIGKILL");
    const timer = setTimeout(kill, openWithin);
    signal?.addEventListener("abort", kill, { once: true });
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      said = (said + part).slice(0, 4096);
    });
    const end = (code: number | null) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", kill);
      child.stderr.destroy(); // a browser that was started may hold the other end
      if (signal?.aborted) {
        reject(signal.reason);
      } else if (code === 0) {
        resolve();
      } else {
        const refusal = /^sallyport: ([a-z0-9-]+): (.{1,500})$/m.exec(said);
        reject(
          new SallyportError("cannot-open", refusal?.[2] ?? "the pages could not be opened", {
            reason: refusal?.[1],
          }),
        );
      }
    };
    child.once("error", () => end(null));
    child.once("exit", end);
  });
}

export function homeArgs(options: Settled): string[] {
  return options.dataDir === undefined ? [] : ["--home", options.dataDir];
}
