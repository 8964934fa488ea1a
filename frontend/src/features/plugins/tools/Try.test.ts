import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";

const api = vi.hoisted(() => {
  const api = { sent: [] as string[], status: 200, answer: "" };
  globalThis.fetch = async (given) => {
    api.sent.push(await (given as Request).text());
    return new Response(api.answer, { status: api.status, headers: { "Content-Type": "application/json" } });
  };
  return api;
});
import Try from "./Try.svelte";

const schema = {
  type: "object",
  required: ["n"],
  properties: { n: { type: "integer" }, s: { type: "string" } },
};
let at = 0;

/** Shows a form; each time of another tool, because the newest call of one is kept. */
function open(risk: string) {
  render(Try, { subject: { plugin: "p", server: "s" }, tool: `t${at++}`, schema, risk });
  return userEvent.setup();
}

beforeEach(() => {
  api.sent.length = 0;
  api.status = 200;
  api.answer = '{"result":{"content":[{"type":"text","text":"<i>fine</i>\u202e"}]}}';
});

it("sends nothing that is not right, and says what is not", async () => {
  const user = open("read");
  await user.click(screen.getByRole("button", { name: "Call it" }));
  expect(screen.getByText("This is required.")).toBeVisible();
  await user.type(screen.getByRole("textbox", { name: "n" }), "x");
  expect(screen.getByRole("textbox", { name: "n" })).toBeInvalid();
  expect(screen.getByText(/not a whole number/)).toBeVisible();
  expect(api.sent).toEqual([]);
});

it("calls what only reads at once, with the digits as they were typed, and shows text as text", async () => {
  const user = open("read");
  await user.type(screen.getByRole("textbox", { name: "n" }), "9007199254740993{Enter}");
  expect(await screen.findByText("answered")).toBeVisible();
  expect(api.sent).toHaveLength(1);
  expect(api.sent[0]).toContain('"args":{"n":9007199254740993},');
  expect(screen.getByText(/<i>fine<\/i>/)).toBeVisible();
  expect(screen.getByText("U+202E")).toHaveClass("mark");
});

it.each(["write", "destructive", "unknown", ""])("asks once about a tool of the class %j", async (risk) => {
  const user = open(risk);
  await user.type(screen.getByRole("textbox", { name: "n" }), "1{Enter}");
  const yes = await screen.findByRole("button", { name: "Yes, call it" });
  expect(api.sent).toEqual([]);
  await user.click(yes);
  expect(await screen.findByText("answered")).toBeVisible();
});

it("tells a refusal from an answer that says failed", async () => {
  api.status = 409;
  api.answer = '{"code":"tool-changed","message":"it changed","details":{"next":"look"}}';
  const user = open("read");
  await user.type(screen.getByRole("textbox", { name: "n" }), "1{Enter}");
  expect(await screen.findByText("tool-changed")).toBeVisible();
  api.status = 200;
  api.answer = '{"result":{"content":[],"isError":true}}';
  await user.click(screen.getByRole("button", { name: "Call it" }));
  expect(await screen.findByText("the tool says: failed")).toBeVisible();
  expect(screen.queryByText("tool-changed")).toBeNull();
});

it("goes from the form to JSON and back, and stays JSON where the form has no place for it", async () => {
  const user = open("read");
  await user.type(screen.getByRole("textbox", { name: "n" }), "12345678901234567890");
  await user.click(screen.getByRole("button", { name: "As JSON" }));
  const json = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Arguments, a JSON object" });
  expect(json.value).toContain("12345678901234567890");
  await user.clear(json);
  await user.click(json);
  await user.paste('{"other":1}');
  await user.click(screen.getByRole("button", { name: "As a form" }));
  expect(screen.getByText(/The form has no place/)).toBeVisible();
  await user.clear(json);
  await user.paste('{"n":7}');
  await user.click(screen.getByRole("button", { name: "As a form" }));
  expect(screen.getByRole("textbox", { name: "n" })).toHaveValue("7");
});
