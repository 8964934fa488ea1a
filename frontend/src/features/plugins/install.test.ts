import { expect, it } from "vitest";
import { asPlace, fetchesPackage, source, update } from "./install";

it.each([
  ["a folder", { kind: "folder", where: " /tmp/notes ", exact: "" }, "/tmp/notes"],
  ["an archive", { kind: "archive", where: "C:\\notes.mcpb", exact: "ignored" }, "C:\\notes.mcpb"],
  ["a package", { kind: "npm", where: "@scope/name", exact: " 1.2.3" }, "npm:@scope/name@1.2.3"],
  ["a commit", { kind: "git", where: "/src/notes", exact: "abc" }, "/src/notes#abc"],
  ["a package without a version is none", { kind: "npm", where: "name", exact: "" }, undefined],
  ["a repository without a commit is none", { kind: "git", where: "/src/notes", exact: " " }, undefined],
  ["nothing", { kind: "folder", where: " ", exact: "" }, undefined],
] as const)("%s", (_, place, want) => expect(source(place)).toBe(want));

it.each([
  ["", {}],
  ["1.2.3", { version: "1.2.3" }],
  ["npm:name@2.0.0", { source: "npm:name@2.0.0" }],
  ["/tmp/next", { source: "/tmp/next" }],
  ["C:\\next", { source: "C:\\next" }],
])("an update to %j", (written, want) => expect(update(written)).toEqual(want));

it("knows commands that fetch a package", () => {
  for (const command of ["npx", "/usr/bin/npx", "npx.cmd", "C:\\node\\npx.cmd", "bunx"])
    expect(fetchesPackage(command)).toBe(true);
  for (const command of [undefined, "node", "./npx.js", "npxx", "uvx"])
    expect(fetchesPackage(command)).toBe(false);
});

it.each([
  "~/src/notes",
  "/tmp/notes.mcpb",
  "npm:@scope/name@1.2.3",
  "/src/notes#0123456789abcdef0123456789abcdef01234567",
  "/odd#name",
])("is the same source again: %s", (text) => expect(source(asPlace(text))).toBe(text));
