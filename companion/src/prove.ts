import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { connect, type Socket } from "node:net";
import { SallyportError } from "./errors.js";
import type { components } from "./schema.js";

export type Health = components["schemas"]["HealthReply"];

/** Where a sidecar is, and what it has to prove. */
export interface Place {
  readonly port: number;
  readonly instance: string;
  readonly key: Buffer;
}

const answerWithin = 10_000;
const largestAnswer = 16 << 10;

/**
 * Connects to 127.0.0.1 and returns the connection only after the program at its other end has proved, on this
 * very connection, that it is the instance (spec/local-api.md 4). What is sent over it afterwards cannot reach a
 * program that took the port in between.
 */
export async function dial(place: Place, signal?: AbortSignal): Promise<{ socket: Socket; health: Health }> {
  signal?.throwIfAborted();
  const socket = connect({ host: "127.0.0.1", port: place.port, family: 4 });
  socket.on("error", () => {}); // told by "close"; an error that nobody hears would end the process
  try {
    return { socket, health: await ask(socket, place, signal) };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function ask(socket: Socket, place: Place, signal: AbortSignal | undefined): Promise<Health> {
  const nonce = randomBytes(24).toString("hex");
  return new Promise((resolve, reject) => {
    let got = Buffer.alloc(0);
    let connected = false;
    const timer = setTimeout(() => {
      end(() => reject(connected ? tooLate() : notRunning()));
    }, answerWithin);
    const onAbort = () => end(() => reject(signal?.reason));
    const onConnect = () => {
      connected = true;
      socket.write(
        `GET /api/desktop-health?nonce=${nonce} HTTP/1.1\r\nHost: 127.0.0.1:${place.port}\r\n\r\n`,
      );
    };
    const onClose = () => end(() => reject(notRunning()));
    const onData = (more: Buffer) => {
      got = Buffer.concat([got, more]);
      try {
        const health = read(got, nonce, place);
        if (health !== undefined) {
          end(() => resolve(health));
        }
      } catch (error) {
        end(() => reject(error));
      }
    };
    const end = (then: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("connect", onConnect).off("close", onClose).off("data", onData);
      then();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("connect", onConnect).on("close", onClose).on("data", onData);
  });
}

/** Reads an answer, or returns undefined where it is not whole yet. */
function read(got: Buffer, nonce: string, place: Place): Health | undefined {
  const head = got.indexOf("\r\n\r\n");
  if (got.length > largestAnswer) {
    throw stranger("its answer is too long");
  }
  if (head < 0) {
    return undefined;
  }
  const [first = "", ...fields] = got.toString("latin1", 0, head).split("\r\n");
  const status = /^HTTP\/1\.1 (200|503)( |$)/.exec(first)?.[1];
  const length = /^[0-9]{1,5}$/.exec(field(fields, "content-length") ?? "")?.[0];
  if (status === undefined || length === undefined) {
    throw stranger("its answer is none of Sallyport's");
  }
  const rest = got.subarray(head + 4);
  if (rest.length < Number(length)) {
    return undefined;
  }
  if (rest.length > Number(length)) {
    throw stranger("it says more than it was asked");
  }
  const health = check(rest, status, nonce, place);
  if (field(fields, "connection")?.toLowerCase() === "close" || health.instance !== place.instance) {
    throw notRunning(); // ours, and stopping or started anew
  }
  return health;
}

function field(fields: string[], name: string): string | undefined {
  const line = fields.find((one) => one.toLowerCase().startsWith(name + ":"));
  return line?.slice(name.length + 1).trim();
}

function check(body: Buffer, status: string, nonce: string, place: Place): Health {
  let health: Health;
  try {
    health = JSON.parse(body.toString("utf8")) as Health;
  } catch {
    throw stranger("its answer is none of Sallyport's");
  }
  if (
    health?.service !== "sallyport" ||
    typeof health.instance !== "string" ||
    typeof health.proof !== "string"
  ) {
    throw stranger("its answer is none of Sallyport's");
  }
  const lines = ["sallyport-health-v1", nonce, health.instance, String(place.port)].join("\n");
  const want = createHmac("sha256", place.key).update(lines).digest();
  const given = Buffer.from(health.proof, "hex");
  if (given.length !== want.length || !timingSafeEqual(given, want)) {
    throw stranger("it cannot prove to be the instance of this state folder");
  }
  if (health.ok !== (status === "200")) {
    throw stranger("its answer contradicts itself");
  }
  return health;
}

function stranger(why: string): SallyportError {
  return new SallyportError("stranger-on-port", `another program is on the port: ${why}`, {
    next: "stop that program, or start again: Sallyport then takes another port",
  });
}

function notRunning(): SallyportError {
  return new SallyportError("not-running", "the sidecar does not answer");
}

function tooLate(): SallyportError {
  return new SallyportError("bad-answer", "what is on the port does not answer in time");
}
