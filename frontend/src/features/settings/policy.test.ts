import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { lines, question } from "./policy";

const by = { user: "ada", via: "cli" };
const at = "2026-03-03T10:00:00Z";
const policy = (over: Partial<Schemas["ApprovalsPolicy"]>): Schemas["ApprovalsPolicy"] => ({
  rules: [],
  standing: [],
  approved: [],
  ...over,
});

describe("what decides about calls", () => {
  it("is nothing without rules and answers", () => {
    expect(lines(policy({}))).toEqual([]);
  });

  it("has answers first, then rules, then what was approved so", () => {
    const kinds = lines(
      policy({
        rules: [{ class: "write", verdict: "ask", by, at }],
        standing: [
          { approval: "d-1", tool: "notes/main:add", client: "claude", for: "always", until: at, by, at },
        ],
        approved: ["notes/main:list"],
      }),
    ).map((l) => l.kind);
    expect(kinds).toEqual(["answer", "rule", "approved"]);
  });

  it("takes an answer back by its tool and client, and cannot put it back", () => {
    const [line] = lines(
      policy({
        standing: [
          { approval: "d-1", tool: "notes/main:add", client: "claude", for: "session", until: at, by, at },
        ],
      }),
    );
    expect(line?.removal).toEqual({ tool: "notes/main:add", client: "claude", verdict: "remove" });
    expect(line?.again).toBeUndefined();
    expect(line?.detail).toContain("until Sallyport quits");
  });

  it("removes a rule by what it is about, and can put it back as it was", () => {
    const [line] = lines(policy({ rules: [{ class: "write", client: "claude", verdict: "deny", by, at }] }));
    expect(line?.removal).toEqual({ class: "write", client: "claude", verdict: "remove" });
    expect(line?.again).toEqual({ class: "write", client: "claude", verdict: "deny" });
  });

  it("leaves what an approval says to the approval", () => {
    expect(lines(policy({ approved: ["notes/main:list"] }))[0]?.removal).toBeUndefined();
  });

  it("has one line for the tools of a connector that were approved so", () => {
    const all = lines(policy({ approved: ["a/main:one", "a/main:two:three", "b/main:one"] }));
    expect(all.map((l) => [l.about, l.tools])).toEqual([
      ["a/main", ["one", "two:three"]],
      ["b/main", ["one"]],
    ]);
  });

  it.each([
    ["allow", "decided as without it"],
    ["ask", "without asking you"],
    ["deny", "may then be made"],
  ])("says what the end of a rule that says %s does", (verdict, says) => {
    const [line] = lines(policy({ rules: [{ tool: "notes/main:add", verdict, by, at }] }));
    expect(question(line!)).toContain(says);
  });
});
