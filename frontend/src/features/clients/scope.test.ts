import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { back, byConnector, idle, sees, seesTool, words } from "./scope";

const only = (...lines: string[]): Schemas["Scope"] => ({ all: false, only: lines });
const all: Schemas["Scope"] = { all: true, only: [] };
const tool = (connector: string, name: string) => ({ connector, name }) as Schemas["Tool"];

describe("what an agent sees", () => {
  it.each([
    [all, "Everything that is enabled, now and later"],
    [only(), "Nothing yet"],
    [only("notes/main", "mail/main:send"), "notes/main, mail/main:send"],
    [only("a/a", "b/b", "c/c", "d/d", "e/e"), "a/a, b/b, c/c and 2 more"],
  ])("is said in words", (scope, said) => {
    expect(words(scope)).toBe(said);
  });
  it("is all, some or none of a connector", () => {
    expect(sees(all, "notes/main")).toBe("all");
    expect(sees(only("notes/main"), "notes/main")).toBe("all");
    expect(sees(only("notes/main:read"), "notes/main")).toBe("some");
    expect(sees(only("notes/mainly"), "notes/main")).toBe("none");
  });
  it("is a tool by itself, or with its connector", () => {
    expect(seesTool(only("notes/main:read"), "notes/main", "read")).toBe(true);
    expect(seesTool(only("notes/main:read"), "notes/main", "delete")).toBe(false);
    expect(seesTool(only("notes/main"), "notes/main", "delete")).toBe(true);
  });
  it("names what is not enabled any more", () => {
    const groups = byConnector([tool("notes/main", "read")]);
    expect(idle(only("notes/main:read", "notes/main:gone", "old/main"), groups)).toEqual([
      "notes/main:gone",
      "old/main",
    ]);
  });
  it("is given back as it was", () => {
    expect(back(all, only("notes/main"))).toEqual({ all: true });
    expect(back(only("notes/main", "mail/main"), only("mail/main"))).toEqual({ only: ["notes/main"] });
    expect(back(only("notes/main"), only("notes/main:read"))).toEqual({ only: ["notes/main"] });
    expect(back(only("notes/main"), only("notes/main", "mail/main"))).toBeUndefined();
  });
});
