import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { Timeline, type Ask } from "./timeline.svelte";

const record = (seq: number) => ({ seq }) as Schemas["AuditRecord"];
const pages: Ask = (cursor) =>
  Promise.resolve(
    cursor === undefined
      ? { records: [record(4), record(3)], next: "c" }
      : { records: [record(2), record(1)] },
  );
const seqs = (t: Timeline) => t.records.map((r) => r.seq);

describe("a timeline", () => {
  it("goes on from where it was to its end", async () => {
    const t = new Timeline(pages);
    await t.more();
    expect(t.complete).toBe(false);
    await t.more();
    expect(seqs(t)).toEqual([4, 3, 2, 1]);
    expect(t.complete).toBe(true);
    await t.more();
    expect(seqs(t)).toHaveLength(4);
  });
  it("asks for one page at a time", async () => {
    let asked = 0;
    const t = new Timeline((...a) => (asked++, pages(...a)));
    await Promise.all([t.more(), t.more(), t.more()]);
    expect(asked).toBe(1);
  });
  it("keeps what it has where a page cannot be had, and tries it again", async () => {
    let fail = false;
    const t = new Timeline((...a) => (fail ? Promise.reject(new Error("gone")) : pages(...a)));
    await t.more();
    fail = true;
    await t.more();
    expect(t.error).toBeInstanceOf(Error);
    expect(seqs(t)).toEqual([4, 3]);
    fail = false;
    await t.more();
    expect(t.error).toBeUndefined();
    expect(seqs(t)).toEqual([4, 3, 2, 1]);
  });
  it("shows nothing that comes after its end", async () => {
    const t = new Timeline(pages);
    const running = t.more();
    t.end();
    await running;
    expect(seqs(t)).toEqual([]);
  });
});
