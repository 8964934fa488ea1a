import { expect, test } from "vitest";
import { Refusal } from "../../api/client";
import { fromBase64, Link, toBase64, type Printed } from "./link";

const said = (text: string): Uint8Array => new TextEncoder().encode(text);

function listener() {
  const heard = { shown: "", dropped: 0, ended: 0, failed: [] as unknown[], lost: [] as boolean[] };
  return {
    heard,
    on: {
      show: (bytes: Uint8Array) => {
        heard.shown += new TextDecoder().decode(bytes);
        return Promise.resolve();
      },
      dropped: (n: number) => void (heard.dropped += n),
      ended: () => void heard.ended++,
      failed: (error: unknown) => void heard.failed.push(error),
      lost: (lost: boolean) => void heard.lost.push(lost),
    },
  };
}

const nothing = () => Promise.resolve();

test("bytes of every kind and length come back as they were", () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, i) => i % 256);
  expect(fromBase64(toBase64(bytes))).toEqual(bytes);
});

test("what is printed is shown in order, from where it was read to, until the end", async () => {
  const { heard, on } = listener();
  const asked: number[] = [];
  const pieces: Printed[] = [
    { data: toBase64(said("one ")), next: 4, dropped: 0, ended: false, console: { printed: 4 } },
    { data: "", next: 4, dropped: 0, ended: false, console: { printed: 4 } },
    { data: toBase64(said("two")), next: 17, dropped: 10, ended: true, console: { printed: 17 } },
  ];
  const output = (after: number) => {
    asked.push(after);
    return Promise.resolve(pieces.shift()!);
  };
  await new Link({ output, input: nothing, size: nothing }, on).follow(new AbortController().signal, "now");
  expect(asked).toEqual([0, 4, 4]);
  expect(heard).toMatchObject({ shown: "one two", dropped: 10, ended: 1, failed: [] });
});

test("what was printed before is shown and answered by nothing, what comes then is", async () => {
  const pieces: Printed[] = [
    { data: toBase64(said("what are you? ")), next: 14, dropped: 0, ended: false, console: { printed: 21 } },
    { data: toBase64(said("and you")), next: 21, dropped: 0, ended: false, console: { printed: 28 } },
    { data: toBase64(said("and now")), next: 28, dropped: 0, ended: true, console: { printed: 28 } },
  ];
  const run = async (opened: "now" | "before") => {
    const { on } = listener();
    const typed: string[] = [];
    const left = [...pieces];
    const link = new Link(
      {
        output: () => Promise.resolve(left.shift()!),
        input: (data) => Promise.resolve(typed.push(new TextDecoder().decode(fromBase64(data)))),
        size: nothing,
      },
      // A terminal answers while it draws.
      {
        ...on,
        show: async (bytes) => {
          link.type(bytes);
          await new Promise((done) => setTimeout(done));
        },
      },
    );
    await link.follow(new AbortController().signal, opened);
    return typed.join("");
  };
  expect(await run("before")).toBe("and now");
  expect(await run("now")).toBe("what are you? and youand now");
});

test("a refusal ends it, and nothing is typed after", async () => {
  const { heard, on } = listener();
  const refusal = new Refusal(404, { code: "console-unknown", message: "there is no such console" });
  let typed = 0;
  const link = new Link(
    { output: () => Promise.reject(refusal), input: () => Promise.resolve(typed++), size: nothing },
    on,
  );
  await link.follow(new AbortController().signal, "now");
  link.type(said("x"));
  expect(heard.failed).toEqual([refusal]);
  expect(typed).toBe(0);
});

test("what is typed while a request is under way goes with the next one, in order", async () => {
  const { on } = listener();
  const sent: string[] = [];
  let free: () => void = () => {};
  const input = (data: string) => {
    sent.push(new TextDecoder().decode(fromBase64(data)));
    return new Promise<void>((resolve) => (free = resolve));
  };
  const link = new Link({ output: () => new Promise<Printed>(() => {}), input, size: nothing }, on);
  for (const key of "abc") link.type(said(key));
  expect(sent).toEqual(["a"]);
  free();
  await expect.poll(() => sent).toEqual(["a", "bc"]);
});

test("what is pasted is cut into pieces, and none is lost", async () => {
  const { on } = listener();
  const sizes: number[] = [];
  let all = "";
  const input = (data: string) => {
    const text = new TextDecoder().decode(fromBase64(data));
    sizes.push(text.length);
    all += text;
    return Promise.resolve();
  };
  const pasted = "0123456789".repeat(10_000);
  new Link({ output: () => new Promise<Printed>(() => {}), input, size: nothing }, on).type(said(pasted));
  await expect.poll(() => all.length).toBe(pasted.length);
  expect(all).toBe(pasted);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * 1024);
});
