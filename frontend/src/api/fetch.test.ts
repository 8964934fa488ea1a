/// <reference types="node" />
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { ask, toText } from "./fetch";

afterEach(() => vi.unstubAllGlobals());

const form = new FormData();
form.append("file", new Blob(["x"]), "x.txt");

it.each([
  ["a Blob", new Blob(["x"])],
  ["a File", new File(["x"], "x.txt")],
  ["a form with a file", form],
  ["bytes", new Uint8Array([1])],
])("sends no %s", (_, body) => {
  vi.stubGlobal("fetch", () => expect.unreachable());
  expect(() => ask("/v1/x", { method: "POST", body: body as BodyInit })).toThrow(/only text/);
  expect(() => toText(body)).toThrow(/only text/);
  expect(() => toText({ within: [body] })).toThrow(/only text/);
});

it("sends text", async () => {
  vi.stubGlobal("fetch", (asked: string, init: RequestInit) =>
    Promise.resolve(`${asked} ${String(init.body)}`),
  );
  expect(await ask("/v1/x", { method: "POST", body: toText({ a: 1 }) })).toBe('/v1/x {"a":1}');
});

it("is the only place that asks anything", () => {
  const others = /\bfetch\(|XMLHttpRequest|sendBeacon|new FormData|new EventSource|new WebSocket/;
  const all = readdirSync("src", { recursive: true, encoding: "utf8" }).filter(
    (name) => /\.(ts|svelte)$/.test(name) && !name.endsWith(".test.ts"),
  );
  expect(all.length).toBeGreaterThan(40);
  const found = all.filter((name) =>
    others.test(readFileSync(join("src", name), "utf8").replaceAll("refetch(", "")),
  );
  expect(found).toEqual([join("api", "fetch.ts")]);
});
