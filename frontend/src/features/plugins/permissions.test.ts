import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { isAbout, lines } from "./permissions";

const none = { tools: [], net: [], secrets: [], fs: [], words: [] };
const of = (transport: string, over: Partial<Schemas["MayTouch"]> = {}) =>
  lines({ transport, mayTouch: { ...none, ...over } });

it("says of a process what nobody keeps it from", () => {
  expect(
    of("stdio")
      .filter((line) => !line.enforced)
      .map((line) => line.key),
  ).toEqual(["process-net", "files"]);
});

it.each(["streamable-http", "sse", "skills"])("%s has no process of its own", (transport) => {
  expect(of(transport).every((line) => line.enforced)).toBe(true);
});

it("names what it may use, and says so where that is nothing", () => {
  const [tools, secrets, net] = of("stdio", { tools: ["*"], secrets: ["T"], net: [] });
  expect(tools!.names).toEqual([]);
  expect(tools!.words).toMatch(/any tool/);
  expect(secrets!.names).toEqual(["T"]);
  expect(net!.words).toMatch(/no other host/);
});

it("knows a rule that is about one connector", () => {
  expect(isAbout("a/b", "a/b:echo")).toBe(true);
  expect(isAbout("a/b", "a/b")).toBe(true);
  expect(isAbout("a/b", "a/bc:echo")).toBe(false);
  expect(isAbout("a/b", "tools of the class read")).toBe(false);
});
