import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { needs } from "./needs";

const connector = (over: Partial<Schemas["Connector"]>): Schemas["Connector"] => ({
  id: "demo/main",
  plugin: "demo",
  server: "main",
  state: "enabled",
  reason: "",
  version: "1.0.0",
  digest: "",
  tools: 1,
  running: false,
  ...over,
});

describe("what needs a person", () => {
  it("is nothing where everything is enabled", () => {
    expect(needs([connector({})], [])).toEqual([]);
  });
  it("is a plugin that changed since it was approved", () => {
    expect(
      needs(
        [connector({ state: "approval_required", reason: "artifact-changed", sentence: "a file changed" })],
        [],
      ),
    ).toMatchObject([{ id: "demo/main", detail: "a file changed", tone: "warn" }]);
  });
  it("is not a plugin that nobody ever approved", () => {
    expect(needs([connector({ state: "approval_required", reason: "never-approved" })], [])).toEqual([]);
  });
  it("is one that crashed too often, as bad", () => {
    expect(needs([connector({ state: "parked", reason: "parked" })], [])).toMatchObject([{ tone: "bad" }]);
  });
  it("is a question once, not the connector that it is about as well", () => {
    const decision = {
      id: "d-1",
      subject: "demo/main",
      state: "open",
      action: "upgrade",
    } as Schemas["Decision"];
    expect(
      needs([connector({ state: "approval_required", reason: "artifact-changed" })], [decision]),
    ).toMatchObject([{ id: "d-1", href: "#/review/d-1" }]);
  });
});
