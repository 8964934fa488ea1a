import { expect, it } from "vitest";
import type { Schemas } from "../../api/client";
import { entries, fromQuery, matching, place, toPath, values } from "./filter";

const connector = (over: Partial<Schemas["Connector"]>): Schemas["Connector"] =>
  ({ id: "notes/main", plugin: "notes", state: "enabled", ...over }) as Schemas["Connector"];
const all = entries([
  connector({
    id: "notes/main",
    source: "~/.agents/plugins/notes",
    format: "agent-plugins",
    title: "Keeps NOTES",
  }),
  connector({ id: "mail/main", state: "disabled", source: "data/plugins/mail", format: "mcpb" }),
  connector({ id: "connectors/far", source: "connectors.json", format: "connectors" }),
]);
const none = { search: "", state: "", format: "", source: "" };
const ids = (filter: Partial<typeof none>): string[] =>
  matching(all, { ...none, ...filter }).map((c) => c.id);

it.each([
  ["nothing chosen", {}, ["notes/main", "mail/main", "connectors/far"]],
  ["a word of its title, in any case", { search: " keeps " }, ["notes/main"]],
  ["a word of its source", { search: "DATA/" }, ["mail/main"]],
  ["a state", { state: "disabled" }, ["mail/main"]],
  ["a format", { format: "connectors" }, ["connectors/far"]],
  ["a source", { source: "~/.agents/plugins" }, ["notes/main"]],
  ["two that do not go together", { state: "disabled", format: "connectors" }, []],
])("%s", (_, filter, want) => expect(ids(filter)).toEqual(want));

it("knows a folder by the plugins in it", () => {
  expect(place({ source: "~/.agents/plugins/demo" })).toBe("~/.agents/plugins");
  expect(place({ source: "connectors.json" })).toBe("connectors.json");
  expect(place({})).toBe("");
});

it("offers what there is, and what is chosen", () => {
  expect(values(all, "source", "gone")).toEqual([
    "connectors.json",
    "data/plugins",
    "gone",
    "~/.agents/plugins",
  ]);
});

it("is kept in the address", () => {
  const filter = { search: "a&b", state: "enabled", format: "", source: "~/x y" };
  expect(fromQuery(new URLSearchParams(toPath(filter).split("?")[1]))).toEqual(filter);
  expect(toPath(none)).toBe("/plugins");
});
