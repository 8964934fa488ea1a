import { expect, it } from "vitest";
import { teller, told } from "./journal";

it.each([
  ["asked", "run install", "Asked whether it may run"],
  ["asked", "tools upgrade", "Asked which tools agents may call"],
  ["asked", "bundle install", "Asked about an installation"],
  ["asked", "update", "Asked about an update"],
  ["asked", "add_note", "Asked add_note"],
  ["probed", "4 tools", "Tried once: 4 tools"],
  ["allowed", "", "Allowed"],
  ["allowed", "add_note list_notes", "Allowed: add_note list_notes"],
  ["superseded", "d-2", "Asked anew"],
  ["of-tomorrow", "x", "of-tomorrow x"],
])("says %s %s as %s", (event, detail, words) => {
  expect(told({ event, detail })).toBe(words);
});

it.each([
  ["sam via browser", "sam (a browser)"],
  ["a via b via cli", "a via b (the command line)"],
  ["sallyport via sallyport", "Sallyport"],
  ["claude", "claude"],
])("says who it was: %s", (by, said) => {
  expect(teller(by)).toBe(said);
});
