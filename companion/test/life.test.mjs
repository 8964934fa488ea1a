// How a sidecar comes, stays and goes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { startSallyport } from "@sallyport/companion";
import { alive, binary, fails, firstLine, home, plain, stranger, until } from "./rig.mjs";

test("it starts, proves itself, answers and leaves nothing", async (t) => {
  const h = await home(t);
  const one = h.companion();
  /** @type {string[]} */
  const names = [];
  one.onState((state) => names.push(state.name));
  assert.deepEqual(one.state, { name: "stopped" });
  await fails(one.health(), "not-running");
  await one.start();
  assert.ok(one.state.name === "ready");
  const { url, port, instance, version, pid } = one.state;
  assert.equal(url, `http://127.0.0.1:${port}`);
  assert.ok(h.processes().includes(pid));
  const health = await one.health();
  assert.deepEqual([health.ok, health.instance, health.version], [true, instance, version]);
  const status = await one.status();
  assert.deepEqual([status.ok, status.waiting, status.instance], [true, 0, instance]);
  assert.deepEqual(await one.decisions(), []);
  const refused = await fails(one.decision("nowhere"), "refused");
  assert.match(refused.reason ?? "", /^[a-z-]+$/);
  await fails(one.decision("../status"), "bad-option");
  await one.stop();
  await fails(one.status(), "not-running");
  assert.deepEqual(names, ["starting", "ready", "stopped"]);
  assert.deepEqual(h.processes(), []);
  const secrets = [];
  for (const name of ["operator.token", "companion.token", "health.key"]) {
    secrets.push((await readFile(join(h.state, name), "utf8")).trim());
  }
  assert.ok(h.log.length > 0);
  for (const secret of secrets) {
    assert.ok(!h.log.join("\n").includes(secret), "a secret is in the log");
  }
});

test("a data folder with spaces and other letters", async (t) => {
  const h = await home(t, "my data – übung");
  const one = await startSallyport({ binary, dataDir: h.dataDir, env: h.env });
  assert.ok((await one.health()).ok);
  await one.stop();
});

test("start, stop and start again are what they say at any moment", async (t) => {
  const h = await home(t);
  const one = h.companion();
  const starting = one.start();
  assert.equal(one.start(), starting, "a second start is the first");
  const stopped = one.stop();
  await fails(starting, "stopped");
  await stopped;
  assert.equal(one.state.name, "stopped");
  assert.deepEqual(h.processes(), []);
  const again = one.start();
  await until("the program runs", () => h.processes().length > 0);
  const both = Promise.all([one.stop(), one.stop()]);
  await fails(again, "stopped");
  await both;
  assert.deepEqual(h.processes(), []);
  await one.start();
  void one.stop();
  await one.start(); // after the stop that is going on
  assert.equal(one.state.name, "ready");
});

test("a signal gives up a start, a request, a wait and the whole", async (t) => {
  const h = await home(t);
  const reason = new Error("enough");
  const over = AbortSignal.abort(reason);
  const early = h.companion();
  await assert.rejects(early.start({ signal: over }), reason);
  assert.equal(early.state.name, "stopped");
  const whole = new AbortController();
  const one = h.companion({ signal: whole.signal });
  await one.start();
  await assert.rejects(one.status({ signal: over }), reason);
  await assert.rejects(one.health({ signal: over }), reason);
  await assert.rejects(one.until(["failed"], { signal: over }), reason);
  await assert.rejects(one.watchDecisions({ signal: over }).next(), reason);
  await assert.rejects(one.openReview("a", { signal: over }), reason);
  whole.abort(reason);
  await one.until(["stopped"]);
  assert.deepEqual(h.processes(), []);
  await assert.rejects(startSallyport({ binary, dataDir: h.dataDir, signal: whole.signal }), reason);
});

test("stop with a signal ends a sidecar that does not end", async (t) => {
  const h = await home(t);
  const one = h.companion();
  await one.start();
  assert.ok(one.state.name === "ready");
  process.kill(one.state.pid, "SIGSTOP");
  await one.stop({ signal: AbortSignal.abort() });
  assert.deepEqual(h.processes(), []);
});

test("a parent that is killed leaves no sidecar and no plugin", async (t) => {
  const h = await home(t);
  await h.plugin("fake");
  const parent = killable(h);
  const sidecar = Number(await firstLine(parent.stdout));
  await h.sallyport("approve", "fake", "--all-tools", "--yes");
  await h.sallyport("call", "fake", "pid");
  assert.ok(alive(sidecar) && h.plugins().length > 0);
  parent.kill("SIGKILL");
  await until("the sidecar and its plugins are gone", () => h.processes().length + h.plugins().length === 0);
});

test("a parent that is killed while it starts leaves nothing", async (t) => {
  const h = await home(t);
  const parent = killable(h);
  // The parent is in the home as well.
  await until("the program runs", () => h.processes().length > 1);
  parent.kill("SIGKILL");
  await until("all is gone", () => h.processes().length === 0);
});

test("a parent that is killed leaves the app that it was attached to", async (t) => {
  const h = await home(t);
  const app = await h.app();
  const parent = killable(h);
  assert.equal(Number(await firstLine(parent.stdout)), app.child.pid);
  parent.kill("SIGKILL");
  await until("the app alone runs", () => h.processes().length === 1);
  assert.ok(alive(app.child.pid));
  app.child.kill("SIGTERM");
  await app.ended;
});

test("stop while it waits to start again", async (t) => {
  const h = await home(t);
  const one = h.companion({ restart: { firstDelay: 1e9, longestDelay: 1e9 } });
  await one.start();
  assert.ok(one.state.name === "ready");
  process.kill(one.state.pid, "SIGKILL");
  await one.until(["restarting"]);
  await fails(one.status(), "not-running");
  await one.stop();
  assert.deepEqual(one.state, { name: "stopped" });
  await one.start();
  assert.equal(one.state.name, "ready");
});

test("a sidecar that is killed comes back on its port", async (t) => {
  const h = await home(t);
  await h.plugin("fake");
  const one = h.companion();
  await one.start();
  assert.ok(one.state.name === "ready");
  const before = one.state;
  await h.sallyport("approve", "fake", "--all-tools", "--yes");
  await h.sallyport("call", "fake", "pid");
  const [server] = h.plugins();
  assert.ok(server);
  /** @type {string[]} */
  const names = [];
  one.onState((state) => names.push(state.name));
  process.kill(before.pid, "SIGKILL");
  const restarting = await one.until(["restarting"]);
  assert.equal(restarting.reason.code, "exited");
  assert.match(restarting.reason.message, /SIGKILL/);
  const after = await one.until(["ready"]);
  assert.equal(after.port, before.port);
  assert.notEqual(after.instance, before.instance);
  assert.deepEqual(names, ["restarting", "ready"]);
  await until("the plugin of the killed one is gone", () => !alive(server));
  assert.ok((await one.health()).ok);
});

test("one that ends again and again is given up, after a few pauses", async (t) => {
  const h = await home(t);
  // The real one, which is killed as soon as it is ready.
  const one = h.companion({ restart: { attempts: 3, firstDelay: 8, longestDelay: 20 } });
  /** @type {number[]} */
  const delays = [];
  let starts = 0;
  one.onState((state) => {
    if (state.name === "restarting") {
      delays.push(state.delay);
      assert.equal(state.attempt, delays.length);
    }
    if (state.name === "ready") {
      starts++;
      process.kill(state.pid, "SIGKILL");
    }
  });
  await one.start();
  const failed = await one.until(["failed"]);
  assert.equal(failed.reason.code, "gave-up");
  assert.equal(starts, 4, "the first, and three more");
  assert.ok(delays.length === 3 && delays.every((ms, i) => ms >= 2 * 2 ** i && ms <= 20), String(delays));
  await fails(one.status(), "not-running");
  await assert.rejects(one.watchDecisions().next(), { code: "gave-up" });
  const again = await one.start().then(() => one.state.name);
  assert.ok(["ready", "restarting"].includes(again), "start() begins anew");
});

test("without restarts an end is an end", async (t) => {
  const h = await home(t);
  const one = h.companion({ restart: false });
  await one.start();
  assert.ok(one.state.name === "ready");
  process.kill(one.state.pid, "SIGKILL");
  assert.equal((await one.until(["failed"])).reason.code, "gave-up");
});

test("of two parents the second attaches, and takes over when the first goes", async (t) => {
  const h = await home(t);
  const first = h.companion();
  const second = h.companion();
  await first.start();
  await second.start();
  assert.ok(first.state.name === "ready" && second.state.name === "attached");
  assert.equal(second.state.instance, first.state.instance);
  assert.ok((await second.status()).ok);
  const { port } = first.state;
  await first.stop();
  const after = await second.until(["ready"]);
  assert.equal(after.port, port);
  assert.ok((await second.health()).ok);
});

test("two parents that start at once have one sidecar", async (t) => {
  const h = await home(t);
  const both = [h.companion(), h.companion()];
  await Promise.all(both.map((one) => one.start()));
  assert.deepEqual(both.map((one) => one.state.name).sort(), ["attached", "ready"]);
});

test("a running app is attached to and goes on after stop", async (t) => {
  const h = await home(t);
  const app = await h.app();
  const one = h.companion();
  await one.start();
  assert.ok(one.state.name === "attached");
  assert.deepEqual([one.state.pid, one.state.instance], [app.child.pid, app.instance]);
  const watching = one.watchDecisions().next(); // a poll that waits
  await one.stop();
  assert.equal((await watching).done, true);
  assert.deepEqual(h.processes(), [app.child.pid], "the app alone runs");
  const other = h.companion({ expectVersion: "999.0.0" });
  const error = await fails(other.start(), "version-mismatch");
  assert.match(error.message, /runs already/);
  assert.ok(alive(app.child.pid));
  app.child.kill("SIGTERM");
  await app.ended;
});

test("another program on the kept port is not adopted, and is told of", async (t) => {
  const h = await home(t);
  const one = h.companion();
  await one.start();
  assert.ok(one.state.name === "ready");
  const { port } = one.state;
  await one.stop();
  const other = await stranger(t, port);
  await one.start();
  assert.ok(one.state.name === "ready");
  assert.notEqual(one.state.port, port);
  assert.deepEqual(
    one.state.notes.map(({ code }) => code),
    ["port-changed"],
  );
  assert.match(one.state.notes[0]?.text ?? "", new RegExp(String(port)));
  await one.status();
  assert.ok(!other.told.join().toLowerCase().includes("authorization"), "it was sent a token");
  await one.stop();
  const wanted = h.companion({ port });
  const error = await fails(wanted.start(), "start-failed");
  assert.equal(error.reason, "port-taken");
  assert.ok(wanted.state.name === "failed" && wanted.state.reason === error);
});

test("files that others may read are not used", { skip: process.getuid === undefined }, async (t) => {
  const h = await home(t);
  const one = h.companion();
  await one.start();
  await one.stop();
  for (const name of ["companion.token", "health.key"]) {
    await chmod(join(h.state, name), 0o644);
    await fails(h.companion().start(), "files-not-private");
    assert.deepEqual(h.processes(), []);
    await chmod(join(h.state, name), 0o600);
  }
});

test("many starts and stops leave no file open and no child", async (t) => {
  const h = await home(t);
  const one = h.companion({ binary: plain });
  const open = () => readdirSync("/proc/self/fd").length;
  await one.start();
  await one.stop();
  const before = await settled(open);
  for (let i = 0; i < 100; i++) {
    await one.start();
    await one.stop();
  }
  assert.deepEqual(h.processes(), []);
  await until("as many files are open as before", () => open() <= before);
});

/** @param {() => number} count */
async function settled(count) {
  let last = -1;
  return until("a count that stays", async () => {
    const now = count();
    const same = now === last;
    last = now;
    return same ? now : undefined;
  });
}

/** A parent in a process of its own. @param {Awaited<ReturnType<typeof home>>} h */
function killable(h) {
  const program = fileURLToPath(new URL("parent.mjs", import.meta.url));
  return spawn(process.execPath, [program, binary, h.dataDir], {
    env: h.env,
    stdio: ["ignore", "pipe", "ignore"],
  });
}
