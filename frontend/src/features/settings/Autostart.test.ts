import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import type { Component } from "svelte";
import { afterEach, expect, it, vi } from "vitest";
import Asking from "../../test/Asking.svelte";

const api = vi.hoisted(() => {
  const api = { state: "off", sent: [] as unknown[] };
  globalThis.fetch = async (given) => {
    const request = given as Request;
    if (request.method === "POST") {
      const body = JSON.parse(await request.text());
      api.sent.push(body);
      api.state = body.on ? "on" : "off";
    }
    const { state } = api;
    return new Response(
      JSON.stringify({ state, how: "XDG autostart", where: "~/x.desktop", program: "/usr/bin/a", unit: "" }),
      { headers: { "Content-Type": "application/json" } },
    );
  };
  return api;
});
import Autostart from "./Autostart.svelte";

afterEach(() => Object.assign(api, { state: "off", sent: [] }));

const show = () => render(Asking, { of: Autostart as unknown as Component<Record<string, unknown>> });

it("is turned on and off again", async () => {
  const user = userEvent.setup();
  show();
  await user.click(await screen.findByRole("button", { name: "Start when I log in" }));
  await user.click(await screen.findByRole("button", { name: "Do not start when I log in" }));
  expect(await screen.findByText("Sallyport does not start when you log in.")).toBeInTheDocument();
  expect(api.sent).toEqual([{ on: true }, { on: false }]);
});

it("offers nothing where another program's entry stands, and says where", async () => {
  api.state = "foreign";
  show();
  expect(await screen.findByText("~/x.desktop")).toBeInTheDocument();
  expect(screen.queryByRole("button")).toBeNull();
});

it("says which program is started where it is not this one", async () => {
  api.state = "broken";
  show();
  expect(await screen.findByText("/usr/bin/a")).toBeInTheDocument();
  expect(screen.getByRole("button", { name: "Start this program instead" })).toBeInTheDocument();
});
