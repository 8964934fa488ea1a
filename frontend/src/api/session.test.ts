import { beforeEach, describe, expect, it } from "vitest";
import { takeCode } from "./session";

beforeEach(() => history.replaceState(null, "", "/"));

describe("a one-time address", () => {
  it("gives its code and is none any more", () => {
    location.hash = "#/open?code=abc_DEF-1";
    expect(takeCode()).toBe("abc_DEF-1");
    expect(location.hash).toBe("#/");
  });

  it("of a question leads there, without the code", () => {
    location.hash = "#/open?code=abc&review=01k5";
    expect(takeCode()).toBe("abc");
    expect(location.hash).toBe("#/review/01k5");
  });

  it.each(["#/open?code=abc&review=", "#/open?code=abc&review=a/b", "#/open?code=", "#/plugins"])(
    "is not %s",
    (hash) => {
      location.hash = hash;
      expect(takeCode()).toBeUndefined();
    },
  );
});
