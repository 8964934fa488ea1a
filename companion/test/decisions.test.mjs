// Questions: seen, and shown to a person.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { binary, fails, home } from "./rig.mjs";

test("questions are told of as they come and go, through the end of a sidecar", async (t) => {
  const h = await home(t);
  await h.plugin("first");
  await h.plugin("second");
  const one = h.companion();
  await one.start();
  assert.ok(one.state.name === "ready");
  const asked = await h.operator("POST", "/v1/plugins/first/main/ask");
  const changes = one.watchDecisions();
  const next = async () => {
    const { value } = await changes.next();
    assert.ok(value);
    return [value.type, value.decision.subject, value.decision.id];
  };
  assert.deepEqual(await next(), ["opened", "first/main", asked.id], "one that was there before");
  assert.deepEqual(
    (await one.decisions()).map(({ id }) => id),
    [asked.id],
  );
  assert.equal((await one.decision(asked.id)).state, "open");

  const waiting = next();
  const other = await h.operator("POST", "/v1/plugins/second/main/ask");
  assert.deepEqual(await waiting, ["opened", "second/main", other.id]);

  process.kill(one.state.pid, "SIGKILL");
  await one.until(["restarting"]);
  await one.until(["ready"]);
  const after = changes.next();
  await h.operator("POST", `/v1/decisions/${asked.id}/answer`, { answer: "deny" });
  const { value } = await after;
  assert.ok(value);
  assert.deepEqual([value.type, value.decision.id, value.decision.answer], ["closed", asked.id, "deny"]);

  const last = changes.next();
  await one.stop();
  assert.equal((await last).done, true);
});

test("a question is shown by the program, which keeps the one-time link to itself", async (t) => {
  const h = await home(t);
  const told = join(h.dir, "told");
  // The real program, but for what would open a browser on the machine of whoever runs the tests.
  const wrapper = await h.script(`
    if [ "$1" = open ]; then
      printf '%s\\n' "$@" >"${told}"
      [ -e "${told}.fail" ] && { echo "sallyport: browser-unavailable: no browser could be opened" >&2; exit 1; }
      exit 0
    fi
    exec "${binary}" "$@"`);
  /** @type {string[]} */
  const opened = [];
  const one = h.companion({ binary: wrapper, openExternal: (url) => opened.push(url) });
  await fails(one.openReview("abc"), "not-running");
  await one.start();
  await one.openReview("abc");
  assert.equal(
    await readFile(told, "utf8"),
    ["open", "--no-start", "--review", "abc", "--home", h.dataDir, ""].join("\n"),
  );
  await one.openReview();
  assert.equal(await readFile(told, "utf8"), ["open", "--no-start", "--home", h.dataDir, ""].join("\n"));
  for (const bad of ["", "-x", "a b", "a&b", "../a", "a".repeat(101)]) {
    await fails(one.openReview(bad), "bad-option");
  }
  await one.openReview("abc", { in: "window" });
  assert.deepEqual(opened, ["sallyport://review/abc"]);
  await import("node:fs/promises").then(({ writeFile }) => writeFile(told + ".fail", ""));
  const error = await fails(one.openReview("abc"), "cannot-open");
  assert.equal(error.reason, "browser-unavailable");
  await fails(h.companion({ binary: wrapper }).openReview("abc", { in: "window" }), "not-running");
});

test("the program's own link leads to the question, and starts nothing where it is told not to", async (t) => {
  const h = await home(t);
  await assert.rejects(h.sallyport("open", "--no-start", "--print"), /no-sidecar/);
  assert.deepEqual(h.processes(), []);
  const one = h.companion();
  await one.start();
  const link = await h.sallyport("open", "--no-start", "--print", "--review", "abc");
  assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/#\/open\?code=[A-Z0-9]+&review=abc\n$/);
  await assert.rejects(h.sallyport("open", "--print", "--review", "a&b"), { code: 1 });
});
