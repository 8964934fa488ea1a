import { expect, it } from "vitest";
import { address, place, tabs } from "./tabs";

const parts = (address: string): string[] =>
  address.replace(/^#/, "").split("/").filter(Boolean).map(decodeURIComponent);

it.each(tabs)("leads to the tab %s and is read as it", (tab) => {
  const subject = { plugin: "notes", server: "a/b #?" };
  expect(place(parts(address(subject, tab)))).toEqual({ subject, tab });
});

it.each([
  ["a name alone is the list", ["plugins", "notes"], undefined],
  ["no tab is the overview", ["plugins", "notes", "main"], { server: "main", tab: "overview" }],
  ["a server that is called like a tab", ["plugins", "notes", "files"], { server: "files", tab: "overview" }],
  ["that and a tab", ["plugins", "notes", "files", "logs"], { server: "files", tab: "logs" }],
  ["slashes that were typed", ["plugins", "notes", "a", "b"], { server: "a/b", tab: "overview" }],
])("%s", (_, parts, want) => {
  const got = place(parts);
  expect(got && { server: got.subject.server, tab: got.tab }).toEqual(want);
});
