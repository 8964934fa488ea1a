import { request } from "node:http";
import type { Socket } from "node:net";
import { SallyportError } from "./errors.js";
import { dial, type Place } from "./prove.js";

const largestBody = 16 << 20;

/**
 * Asks a sidecar for what is at a path. Every request has a connection of its own, which has proved itself: loopback
 * is fast, and nothing is kept open that somebody could inherit.
 */
export async function get<T>(place: Place, token: string, path: string, signal?: AbortSignal): Promise<T> {
  const { socket } = await dial(place, signal);
  try {
    const { status, text } = await send(socket, place, token, path, signal);
    return understood<T>(status, text);
  } finally {
    socket.destroy();
  }
}

function send(
  socket: Socket,
  place: Place,
  token: string,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const failed = () =>
      reject(
        signal?.aborted ? signal.reason : new SallyportError("not-running", "the sidecar does not answer"),
      );
    const asked = request({
      createConnection: () => socket,
      host: "127.0.0.1",
      port: place.port,
      path,
      headers: { Authorization: `Bearer ${token}`, Accept: "application/json" },
      ...(signal && { signal }),
    });
    asked.on("error", failed);
    asked.on("response", (answer) => {
      const parts: Buffer[] = [];
      let size = 0;
      answer.on("data", (part: Buffer) => {
        parts.push(part);
        size += part.length;
        if (size > largestBody) {
          reject(badAnswer());
          asked.destroy();
        }
      });
      answer.on("error", failed);
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") }),
      );
    });
    asked.end();
  });
}

function understood<T>(status: number, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badAnswer();
  }
  if (status === 200) {
    return value as T;
  }
  const { code, message, details } = (value ?? {}) as {
    code?: unknown;
    message?: unknown;
    details?: { next?: unknown };
  };
  if (typeof code !== "string" || typeof message !== "string") {
    throw badAnswer();
  }
  throw new SallyportError("refused", message, {
    reason: code,
    next: typeof details?.next === "string" ? details.next : undefined,
  });
}

function badAnswer(): SallyportError {
  return new SallyportError("bad-answer", "the sidecar's answer is not understood");
}
