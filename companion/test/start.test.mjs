// Programs that are no sidecar, or not the one that was asked for.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Sallyport } from "@sallyport/companion";
import { binary, fails, home, stranger, until } from "./rig.mjs";

const instance = "a".repeat(32);

/** @param {object} more */
const line = (more) =>
  JSON.stringify({
    event: "ready",
    url: "http://127.0.0.1:23456",
    port: 23456,
    instance,
    version: "1.0.0",
    pid: 1,
    ...more,
  });

/** @type {[string, Partial<import("@sallyport/companion").Options>, import("@sallyport/companion").ErrorCode][]} */
const options = [
  ["no path", { binary: "" }, "bad-option"],
  ["a name that PATH would be searched for", { binary: "sallyport" }, "bad-option"],
  ["no port", { port: 80 }, "bad-option"],
  ["no time", { startTimeout: 0 }, "bad-option"],
  ["no number", { restart: { attempts: -1 } }, "bad-option"],
  ["nothing there", { binary: "/nowhere/sallyport" }, "binary-missing"],
  ["a folder", { binary: "/" }, "binary-missing"],
  ["an archive", { binary: "/opt/app/app.asar/bin/sallyport" }, "binary-in-archive"],
  ["another version", { expectVersion: "999.0.0" }, "version-mismatch"],
];

for (const [what, wrong, code] of options) {
  test(`an option that is wrong: ${what}`, async (t) => {
    const h = await home(t);
    await fails((async () => h.companion(wrong).start())(), code);
    assert.deepEqual(h.processes(), []);
  });
}

test("a file that may not be executed", async (t) => {
  const h = await home(t);
  const path = join(h.dir, "plain");
  await writeFile(path, "#!/bin/sh\n", { mode: 0o644 });
  await fails(h.companion({ binary: path }).start(), "binary-not-executable");
  const foreign = join(h.dir, "foreign");
  await writeFile(foreign, "#!/nowhere/interpreter\n", { mode: 0o755 });
  const error = await fails(h.companion({ binary: foreign }).start(), "binary-not-executable");
  assert.equal(error.reason, "ENOENT");
});

/** @type {[string, string][]} */
const lines = [
  ["words", "echo hello; cat"],
  ["an empty line", "echo; cat"],
  ["null", "echo null; cat"],
  ["JSON of something else", `echo '{"event":"started"}'; cat`],
  ["another host", `echo '${line({ url: "http://example.com:23456" })}'; cat`],
  ["another port in the address", `echo '${line({ url: "http://127.0.0.1:1" })}'; cat`],
  ["a port that is none", `echo '${line({ port: 99999, url: "http://127.0.0.1:99999" })}'; cat`],
  ["an instance that is none", `echo '${line({ instance: "../../x" })}'; cat`],
  ["a version of several lines", `echo '${line({ version: "1\\n2" })}'; cat`],
  ["a line without an end", "head -c 100000 /dev/zero | tr '\\0' x; cat"],
  ["a line that is too long", `echo '${line({ more: "x".repeat(5000) })}'; cat`],
];

for (const [what, text] of lines) {
  test(`a program that prints ${what}`, async (t) => {
    const h = await home(t);
    await fails(h.companion({ binary: await h.script(text) }).start(), "bad-ready-line");
    assert.deepEqual(h.processes(), []);
  });
}

test("a program that ends at once gives its reason, or its exit code", async (t) => {
  const h = await home(t);
  const plain = await fails(h.companion({ binary: await h.script("exit 3") }).start(), "start-failed");
  assert.match(plain.message, /exit code 3/);
  const said = await h.script("echo 'sallyport: store-newer: the store is of a newer Sallyport' >&2; exit 1");
  const error = await fails(h.companion({ binary: said }).start(), "start-failed");
  assert.deepEqual([error.reason, error.message], ["store-newer", "the store is of a newer Sallyport"]);
});

test("a program that says nothing is ended, whatever it does about it", async (t) => {
  const h = await home(t);
  const deaf = await h.script("trap '' TERM INT HUP PIPE; while :; do sleep 600 </dev/null & wait; done");
  const one = h.companion({ binary: deaf, startTimeout: 300, stopTimeout: 100 });
  await fails(one.start(), "start-timeout");
  assert.ok(one.state.name === "failed");
  // Its own child is not ours to end: a real sidecar ends its own.
  for (const pid of h.processes()) {
    process.kill(pid, "SIGKILL");
  }
});

test("a ready line of somebody else's address is not believed", async (t) => {
  const h = await home(t);
  const real = h.companion();
  await real.start(); // so that there are a key and a token
  assert.ok(real.state.name === "ready");
  const other = await stranger(t);
  const words = { port: other.port, url: `http://127.0.0.1:${other.port}`, instance: "0".repeat(32) };
  const pretend = await h.script(`echo '${line(words)}'; exec cat`);
  const error = await fails(h.companion({ binary: pretend }).start(), "stranger-on-port");
  assert.match(error.message, /cannot prove/);
  assert.equal(other.told.length, 1);
  assert.ok(!other.told.join().toLowerCase().includes("authorization"), "it was sent a token");

  // One that passes the question on to the real one shows a proof, which is for another port.
  const { url, instance: own } = real.state;
  const relay = await stranger(t, 0, async (path) => (await fetch(url + path)).text());
  const relayed = { port: relay.port, url: `http://127.0.0.1:${relay.port}`, instance: own };
  const mirror = await h.script(`echo '${line(relayed)}'; exec cat`);
  await fails(h.companion({ binary: mirror }).start(), "stranger-on-port");
  assert.ok(!relay.told.join().toLowerCase().includes("authorization"), "it was sent a token");
});

test("an answer that goes on without an end is not read on", async (t) => {
  const h = await home(t);
  const real = h.companion();
  await real.start();
  const other = await stranger(t, 0, async () => "x".repeat(1 << 20));
  const words = { port: other.port, url: `http://127.0.0.1:${other.port}` };
  const pretend = await h.script(`echo '${line(words)}'; exec cat`);
  await fails(h.companion({ binary: pretend }).start(), "stranger-on-port");
});

test("without a folder of its own a program proves nothing", async (t) => {
  const h = await home(t);
  const pretend = await h.script(`echo '${line({})}'; exec cat`);
  await fails(h.companion({ binary: pretend }).start(), "files-unusable");
});

test("what it prints after the ready line goes nowhere, and a log line has an end", async (t) => {
  const h = await home(t);
  const noisy = await h.script(`head -c 300000 /dev/zero | tr '\\0' y >&2; echo >&2; exec "${binary}" "$@"`);
  const one = h.companion({ binary: noisy });
  await one.start();
  await until("the log came", () => h.log.some((text) => text.startsWith("yyy")));
  assert.ok(h.log.every((text) => text.length <= 8192));
});

test("options are taken as they are when it is made", () => {
  const env = { HOME: "/x" };
  const one = new Sallyport({ binary: "/x/sallyport", env });
  assert.equal(one.state.name, "stopped");
});
