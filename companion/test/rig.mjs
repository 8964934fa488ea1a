// What the tests share: homes, plugins, programs that are none, and what runs.
// SALLYPORT is the real program, built with the race detector; FAKESERVER a plugin's server that ends only when it is
// made to. A Go test (e2e/companion_test.go) builds both and starts these.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Sallyport, SallyportError } from "@sallyport/companion";

const run = promisify(execFile);

/** @param {string} name */
function required(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: go test ./e2e -run Companion`);
  return value;
}

export const binary = required("SALLYPORT");

/** The same as it is shipped, for what is done often. */
export const plain = process.env["SALLYPORT_PLAIN"] ?? binary;

/** Long, since machines are slow and busy; nothing waits for its end where all is well. */
export const patience = 120_000;

/**
 * Waits until something is so.
 * @template T
 * @param {string} what
 * @param {() => T | Promise<T>} is
 * @returns {Promise<NonNullable<T>>}
 */
export async function until(what, is) {
  const end = performance.now() + patience;
  for (;;) {
    const value = await is();
    if (value) {
      return value;
    }
    assert.ok(performance.now() < end, `never: ${what}`);
    await sleep(20);
  }
}

/**
 * A new user with a data folder of their own. Whatever still runs there at the end is a failure.
 * @param {import("node:test").TestContext} t
 * @param {string} [name]
 */
export async function home(t, name = "data") {
  const dir = await mkdtemp(join(tmpdir(), "sp-"));
  const dataDir = join(dir, name);
  const env = {
    HOME: dir,
    PATH: process.env["PATH"],
    TMPDIR: tmpdir(),
    LANG: "C.UTF-8",
    GORACE: "halt_on_error=0 exitcode=66",
    COMPANION_TEST: dir,
  };
  /** @type {Sallyport[]} */
  const all = [];
  /** @type {string[]} */
  const log = [];
  const h = {
    dir,
    dataDir,
    env,
    log,
    state: join(dataDir, "state"),
    /** @param {Partial<import("@sallyport/companion").Options>} [more] */
    companion(more = {}) {
      const one = new Sallyport({
        binary,
        dataDir,
        env,
        startTimeout: patience,
        stopTimeout: patience,
        restart: { firstDelay: 20 },
        onLog: (line) => log.push(line),
        ...more,
      });
      all.push(one);
      return one;
    },
    /** The command itself. @param {string[]} args */
    async sallyport(...args) {
      const { stdout } = await run(binary, [...args, "--home", dataDir], { env });
      return stdout;
    },
    /**
     * What the operator's own programs ask.
     * @param {string} method
     * @param {string} path
     * @param {unknown} [body]
     * @returns {Promise<any>}
     */
    async operator(method, path, body) {
      const { url } = JSON.parse(await readFile(join(h.state, "desktop.json"), "utf8"));
      const token = (await readFile(join(h.state, "operator.token"), "utf8")).trim();
      const answer = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const value = await answer.json();
      assert.equal(answer.status, 200, JSON.stringify(value));
      return value;
    },
    /** A plugin whose server ignores the end of its input. @param {string} name */
    async plugin(name) {
      const to = join(dir, ".agents", "plugins", name);
      await mkdir(join(to, "bin"), { recursive: true });
      await copyFile(required("FAKESERVER"), join(to, "bin", "server"));
      const schema = "https://agent-plugins.org/schemas/1.0.0/";
      const main = { type: "stdio", command: "./bin/server", args: ["ignores-eof"] };
      await writeFile(
        join(to, "plugin.json"),
        JSON.stringify({ $schema: schema + "plugin.schema.json", name, version: "1.0.0" }),
      );
      await writeFile(
        join(to, "mcp.json"),
        JSON.stringify({ $schema: schema + "mcp.schema.json", mcpServers: { main } }),
      );
    },
    /** Every process that came out of this home, by its environment; plugins have one of their own. */
    processes: () => processes((environ) => environ.includes(`COMPANION_TEST=${dir}\0`)),
    plugins: () => processes((environ) => environ.includes(`PLUGIN_DATA=${dataDir}/`)),
    /** A program of a few lines of shell, to be started in place of the real one. @param {string} text */
    async script(text) {
      const path = join(dir, `program-${Math.random().toString(36).slice(2)}`);
      await writeFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
      return path;
    },
    /** A sidecar that somebody else started. */
    async app() {
      const child = spawn(binary, ["serve", "--json", "--home", dataDir], {
        env,
        stdio: ["ignore", "pipe", "ignore"],
      });
      const ready = JSON.parse(await firstLine(child.stdout));
      return { ...ready, child, ended: new Promise((resolve) => child.once("exit", resolve)) };
    },
  };
  t.after(async () => {
    await Promise.all(all.map((one) => one.stop()));
    await until("nothing runs in the home", () => h.processes().length + h.plugins().length === 0);
    assert.doesNotMatch(log.join("\n"), /DATA RACE/);
    await run("chmod", ["-R", "u+w", dir]);
    await rm(dir, { recursive: true });
  });
  return h;
}

/** @param {import("node:stream").Readable} stream */
export function firstLine(stream) {
  return new Promise((resolve, reject) => {
    let text = "";
    stream.setEncoding("utf8").on("data", (part) => {
      text += part;
      if (text.includes("\n")) {
        resolve(text.slice(0, text.indexOf("\n")));
      }
    });
    stream.once("end", () => reject(new Error(`it ended after ${JSON.stringify(text)}`)));
  });
}

/** @param {(environ: string) => boolean} is */
function processes(is) {
  return readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return is(readFileSync(`/proc/${pid}/environ`, "latin1") + "\0");
      } catch {
        return false; // ended, or somebody else's
      }
    });
}

/** @param {number} pid */
export function alive(pid) {
  return existsSync(`/proc/${pid}/exe`) && !/^State:\s+Z/m.test(tryRead(`/proc/${pid}/status`));
}

/** @param {string} path */
function tryRead(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "State: Z";
  }
}

/**
 * Something that looks like Sallyport's health to whoever checks no proof. It keeps what it is told.
 * @param {import("node:test").TestContext} t
 * @param {number} [port]
 * @param {(path: string) => Promise<string>} [answer]
 */
export async function stranger(t, port = 0, answer) {
  /** @type {string[]} */
  const told = [];
  const server = createServer(async (request, response) => {
    told.push(`${request.url} ${JSON.stringify(request.headers)}`);
    const text =
      (await answer?.(request.url ?? "")) ??
      JSON.stringify({
        ok: true,
        service: "sallyport",
        version: "dev",
        instance: "0".repeat(32),
        ts: Date.now(),
        proof: "0".repeat(64),
      });
    response.setHeader("Content-Length", Buffer.byteLength(text));
    response.end(text);
  });
  await until("the port is free for the stranger", async () => {
    server.listen(port, "127.0.0.1");
    return new Promise((resolve) => {
      server.once("listening", () => resolve(true));
      server.once("error", () => resolve(false));
    });
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return { told, port: address.port };
}

/**
 * Waits for an error with a code, and returns it. It shows no path and no secret.
 * @param {Promise<unknown>} promise
 * @param {import("@sallyport/companion").ErrorCode} code
 * @returns {Promise<SallyportError>}
 */
export async function fails(promise, code) {
  const error = await promise.then(
    () => undefined,
    (/** @type {unknown} */ why) => why,
  );
  assert.ok(error instanceof SallyportError, `want ${code}, got ${error}`);
  assert.equal(error.code, code, error.message);
  assert.doesNotMatch(`${error.message} ${error.next}`, /\/|[A-Za-z0-9_-]{40}/);
  return error;
}
