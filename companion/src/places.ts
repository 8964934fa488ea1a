import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { SallyportError } from "./errors.js";

/** What lies in the state folder and is this user's alone. */
export interface Keys {
  /** Proves an instance. */
  readonly health: Buffer;
  /** Sees everything and answers nothing. The operator's token is never read here. */
  readonly token: string;
}

/** The state folder, as the program itself finds it (runtime/host/places.go). */
export function stateFolder(dataDir: string | undefined, env: NodeJS.ProcessEnv): string {
  const whole = dataDir ?? env["SALLYPORT_HOME"];
  if (whole) {
    return join(whole, "state");
  }
  const named = env["XDG_STATE_HOME"];
  return join(named && isAbsolute(named) ? named : systemState(env), "sallyport");
}

function systemState(env: NodeJS.ProcessEnv): string {
  const home = env["HOME"] || homedir();
  switch (process.platform) {
    case "win32":
      return env["LOCALAPPDATA"] || join(homedir(), "AppData", "Local");
    case "darwin":
      return join(home, "Library", "Application Support");
    default:
      return join(home, ".local", "state");
  }
}

export async function readKeys(state: string): Promise<Keys> {
  await checkFolder(state);
  const key = (await readPrivate(join(state, "health.key"), "health.key")).trim();
  const token = (await readPrivate(join(state, "companion.token"), "companion.token")).trim();
  if (!/^[0-9a-f]{64}$/.test(key) || !/^[A-Za-z0-9_-]{43}$/.test(token)) {
    throw unusable("the key or the token of the state folder is damaged");
  }
  return { health: Buffer.from(key, "hex"), token };
}

async function checkFolder(path: string): Promise<void> {
  const info = await lstat(path).catch(() => undefined);
  if (!info?.isDirectory()) {
    throw unusable("the state folder is not there: the program keeps its files elsewhere");
  }
  checkOwner(info, "the state folder");
}

/** Reads a small file that is its owner's alone: opened first, then looked at, so that both are one file. */
async function readPrivate(path: string, name: string): Promise<string> {
  // Windows has no such flags; there the folder's own access list is the wall.
  const noFollow = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const file = await open(path, constants.O_RDONLY | noFollow).catch(() => undefined);
  if (file === undefined) {
    throw unusable(`${name} cannot be read`);
  }
  try {
    const info = await file.stat();
    if (!info.isFile() || info.size > 1024) {
      throw unusable(`${name} is not a small file`);
    }
    checkOwner(info, name);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1024), 0, 1024, 0);
    return buffer.toString("latin1", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function checkOwner(info: { uid: number; mode: number }, name: string): void {
  if (process.getuid === undefined) {
    return;
  }
  if (info.uid !== process.getuid() || (info.mode & 0o077) !== 0) {
    throw new SallyportError("files-not-private", `${name} belongs to another user, or others may use it`, {
      next: "make the folder and its files yours alone, or choose another dataDir",
    });
  }
}

function unusable(message: string): SallyportError {
  return new SallyportError("files-unusable", message, { next: "see with: sallyport doctor" });
}
