import { SallyportError } from "./errors.js";

/** What `serve --companion` prints when it is ready (spec/local-api.md 9). */
export interface Ready {
  readonly url: string;
  readonly port: number;
  readonly instance: string;
  readonly version: string;
  readonly pid: number;
  /** The sidecar was there before, and somebody else's it stays. */
  readonly attached: boolean;
}

/** The longest line that is read. A real one has about 200 bytes. */
export const longestReady = 4096;

/** Reads the line. Whatever it says besides is ignored, and nothing of it is believed: see prove. */
export function parseReady(line: string): Ready {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw notReady();
  }
  const {
    event,
    url,
    port,
    instance,
    version,
    pid,
    attached = false,
  } = (value ?? {}) as Record<string, unknown>;
  if (
    event !== "ready" ||
    !isPort(port) ||
    url !== `http://127.0.0.1:${port}` ||
    typeof instance !== "string" ||
    !/^[0-9a-f]{32}$/.test(instance) ||
    typeof version !== "string" ||
    !/^[!-~]{1,100}$/.test(version) ||
    !Number.isSafeInteger(pid) ||
    (pid as number) < 1 ||
    typeof attached !== "boolean"
  ) {
    throw notReady();
  }
  return { url, port, instance, version, pid: pid as number, attached };
}

function isPort(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1024 && (value as number) <= 65535;
}

export function notReady(): SallyportError {
  return new SallyportError(
    "bad-ready-line",
    "the program printed something that is no sidecar's ready line",
    {
      next: "check that binary is sallyport, in a version of today",
    },
  );
}
