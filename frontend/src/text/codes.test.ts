import { expect, it } from "vitest";
import { ofCode, ofPart } from "./codes";

it("says a code in words, and has none for one that it does not know", () => {
  expect(ofCode("artifact-changed")).toBe("its files changed");
  expect(ofCode("of-tomorrow")).toBeUndefined();
  expect(ofCode("constructor")).toBeUndefined();
});

it.each([
  ["args", "Arguments"],
  ["permissions.net", "Hosts that it may reach"],
  ["env.API_KEY", "Variable API_KEY"],
  ["headers.X-A.b", "Header X-A.b"],
  ["tomorrow.x", undefined],
  ["env", "Variable"],
])("says what of a connector changed: %s", (field, said) => {
  expect(ofPart(field)).toBe(said);
});
