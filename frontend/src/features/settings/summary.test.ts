import { describe, expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { summary } from "./summary";

const private_ = "/home/ada/private";
const status: Schemas["Status"] = {
  version: "1.2.3",
  instance: private_,
  startedAt: "2026-03-03T10:00:00Z",
  ok: false,
  problems: [
    {
      code: "connector-blocked",
      severity: "warning",
      subject: private_,
      title: private_,
      text: private_,
      next: private_,
      since: "2026-03-03T10:00:00Z",
    },
  ],
  connectors: { enabled: 2, approval_required: 1 },
  running: 1,
  waiting: 0,
  clients: 3,
};
const keyring: Schemas["Keyring"] = {
  state: "locked",
  code: "keyring-locked",
  where: private_,
  says: private_,
  next: private_,
  what: private_,
  needs: [{ id: private_, secrets: [private_] }],
  sealKey: { in: "keyring", waiting: true, says: private_ },
};

describe("the summary for a report", () => {
  it("says states, codes and counts", () => {
    const text = summary(status, { keyring, onlyWindow: false, folders: 3, rules: 2 });
    for (const said of [
      "sallyport 1.2.3",
      "healthy no",
      "connector-blocked (warning)",
      "approval_required 1, enabled 2",
      "keyring locked (keyring-locked)",
      "seal key keyring, waited for",
      "plugin folders 3",
    ]) {
      expect(text).toContain(said);
    }
  });

  it("has nothing of what plugins, agents and people name", () => {
    expect(summary(status, { keyring })).not.toContain("private");
  });

  it("names one problem of many subjects once", () => {
    const twice = { ...status, problems: [...status.problems, { ...status.problems[0]!, subject: "other" }] };
    expect(summary(twice, {}).match(/connector-blocked/g)).toHaveLength(1);
  });
});
