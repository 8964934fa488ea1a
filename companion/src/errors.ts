/** Why something did not work, as codes that do not change. */
export type ErrorCode =
  /** An option is missing or wrong. */
  | "bad-option"
  /** There is no file where the program should be. */
  | "binary-missing"
  /** The program lies inside an asar archive, from which no system starts anything. */
  | "binary-in-archive"
  /** The file is there and cannot be started: no right to, or not for this machine. */
  | "binary-not-executable"
  /** The program ended before it was ready; `reason` is the code that it gave. */
  | "start-failed"
  /** The program said nothing in time. */
  | "start-timeout"
  /** What the program printed is not the line of a sidecar. */
  | "bad-ready-line"
  /** Another version answers than the one that was asked for. */
  | "version-mismatch"
  /** What answers on the port cannot prove to be the sidecar. */
  | "stranger-on-port"
  /** The key or the token is another user's, or others may read it. */
  | "files-not-private"
  /** The key or the token is not there, or is none. */
  | "files-unusable"
  /** No sidecar runs now. */
  | "not-running"
  /** The sidecar does not answer in time, or not in a form that is understood. */
  | "bad-answer"
  /** The sidecar refuses; `reason` is the code of the refusal. */
  | "refused"
  /** The sidecar ended by itself. */
  | "exited"
  /** It ended too often; `cause` is the last reason. */
  | "gave-up"
  /** stop() was called. */
  | "stopped"
  /** The question cannot be shown. */
  | "cannot-open";

/** Every error of this package. Its message holds no secret and no path. */
export class SallyportError extends Error {
  override readonly name = "SallyportError";
  readonly code: ErrorCode;
  /** The code that the sidecar itself gave (docs/codes.md), where it gave one. */
  readonly reason: string | undefined;
  /** What a person can do, in one sentence. */
  readonly next: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    more: { reason?: string | undefined; next?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.reason = more.reason;
    this.next = more.next;
  }
}

/** Whether trying the same again would end the same way. */
export function isFinal(error: unknown): boolean {
  return error instanceof SallyportError && finalCodes.has(error.code);
}

const finalCodes: ReadonlySet<ErrorCode> = new Set([
  "bad-option",
  "binary-missing",
  "binary-in-archive",
  "binary-not-executable",
  "bad-ready-line",
  "version-mismatch",
  "stranger-on-port",
  "files-not-private",
]);
