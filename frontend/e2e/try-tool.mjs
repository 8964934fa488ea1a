// What was allowed to run is tried: how far it is and what it writes is seen, it is cancelled, and one that does
// not come up says why. Then tools are tried from forms: answered, failed, refused, asked about, cancelled.
import { expect, heard, story, tell } from "./browser.mjs";

await story("try-tool", async ({ page, origin, see }) => {
  const button = (name) => page.getByRole("button", { name, exact: true });

  /** Opens a plugin's question and allows it. */
  async function allow(id) {
    await page.goto(`${origin}/#/plugins/${id}`);
    await page.getByRole("heading", { name: id }).waitFor();
    await button("Review…").click();
    await button("Allow to run…").click();
  }

  await page.getByRole("heading", { name: "Home" }).waitFor();

  // One that never answers: its steps, the end of what it writes, and a way to end it.
  await allow("slow/main");
  const first = page.getByRole("region", { name: "The first try" });
  await first.getByRole("listitem").filter({ hasText: "waiting for its first answer" }).waitFor();
  const said = first.getByRole("region", { name: "Its error output" });
  await said.getByText("looking for <b>the index</b>").waitFor();
  await said.getByText("still looking, 3").waitFor();
  await said.getByText("\\u202e\\x1b[2J").waitFor();
  expect((await first.locator("b b, img").count()) === 0, "error output became markup");
  await see("probe");
  // Whoever opens the page anew goes on with it.
  await page.reload();
  await said.getByText("still looking, 3").waitFor();
  await button("Cancel the try").click();
  await page.getByText(/you cancelled the first try, so nothing was approved/).waitFor();
  await page.getByText("Nothing was approved.", { exact: true }).waitFor();
  await see("probe-cancelled");
  tell("cancelled");
  await heard();
  await button("Review it again…").click();
  await button("Deny").waitFor();
  expect(
    await button("Deny").evaluate((node) => node === document.activeElement),
    "Deny has not the focus when it is asked again",
  );
  await button("Deny").click();
  await page.getByText(/denied.*\(a browser\)/).waitFor();

  // One that crashes says how, what to do next, and what it wrote last.
  await allow("broken/main");
  await page.getByText(/exit status 3/).waitFor();
  await page.getByText(/its last error output mostly says why/).waitFor();
  await page.getByText("fakeserver: cannot start, as asked").waitFor();
  await see("probe-failed");

  // Tools are tried from forms made of their schemas.
  await allow("fake/main");
  await page.getByText(/Which of its \d+ tools may agents call/).waitFor();
  for (const name of ["echo", "change", "hang", "order"])
    await page.getByRole("checkbox", { name, exact: true }).check();
  await button("Enable 4 tools").click();
  await page.getByRole("tab", { name: /Tools/ }).click();
  const tool = (name) =>
    page.locator("li", { has: page.locator(`details > summary > code:text-is("${name}")`) }).last();
  const order = tool("order");
  await order.locator("summary").first().click();
  await order.getByRole("button", { name: "Call it" }).waitFor();
  expect((await order.locator("img").count()) === 0, "a title became markup");
  await see("try-form");
  const field = (name) => order.getByRole("textbox", { name });
  await field("count").fill("1.5");
  await order.getByRole("button", { name: "Call it" }).click();
  await order.getByText("This is not a whole number, such as 15.").waitFor();
  await order.getByText("Nothing was sent", { exact: false }).waitFor();
  await see("try-wrong");
  await field(/Name/).fill("Ann");
  await field("count").fill("9007199254740993");
  await order.getByRole("combobox", { name: "gift" }).selectOption("true");
  await field("street").fill("High \u202eStreet");
  await order.getByRole("button", { name: "Add an item" }).click();
  await order.getByRole("textbox", { name: "Item 1" }).fill("<b>x</b>");
  await field("extra").fill("1.50");
  // What may do more than read is asked about once; Enter does not say yes.
  await field("count").press("Enter");
  const yes = page.getByRole("button", { name: "Yes, call it" });
  await yes.waitFor();
  await yes.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await yes.isVisible(), "Enter called a tool that may do more than read");
  await yes.click();
  await order.getByText("answered", { exact: true }).waitFor();
  const sent = await order.getByRole("region", { name: "Text of the answer" }).first().innerText();
  const want =
    'ordered: {"name":"Ann","count":9007199254740993,"gift":true,"place":{"street":"High U+202EStreet"},"tags":["<b>x</b>"],"extra":1.50}';
  expect(sent.trim() === want, `what was sent is ${sent}`);
  await order.getByText(/image, 8 bytes/).waitFor();
  expect((await order.locator("img").count()) === 0, "a picture of a plugin's is shown");
  await order.getByRole("button", { name: "Show all 5,000 characters" }).click();
  await see("try-answered");

  // As JSON, and back: what was filled in is the same.
  await order.getByRole("button", { name: "As JSON" }).click();
  const json = order.getByRole("textbox", { name: "Arguments, a JSON object" });
  expect((await json.inputValue()).includes('"count": 9007199254740993'), "the JSON has another number");
  await order.getByRole("button", { name: "As a form" }).click();
  expect((await field("count").inputValue()) === "9007199254740993", "the form has another number");

  // What the tool says failed is told apart from what Sallyport refuses.
  await field(/Name/).fill("nobody");
  await order.getByRole("button", { name: "Call it" }).click();
  await yes.click();
  await order.getByText("the tool says: failed").waitFor();
  const change = tool("change");
  await change.locator("summary").first().click();
  await change.getByRole("button", { name: "Call it" }).click();
  await yes.click();
  await change.getByText("answered", { exact: true }).waitFor();
  const echo = tool("echo");
  await echo.locator("summary").first().click();
  await echo.getByRole("button", { name: "Call it" }).click();
  await yes.click();
  await echo.getByText("tool-changed").waitFor();
  await see("try-refused");

  // One that never answers is cancelled.
  const hang = tool("hang");
  await hang.locator("summary").first().click();
  await hang.getByRole("button", { name: "Call it" }).click();
  await yes.click();
  await hang.getByText(/Calling/).waitFor();
  await hang.getByRole("button", { name: "Cancel" }).click();
  await hang.getByText(/You cancelled it/).waitFor();
  tell("tried");
  await heard();

  // An agent's call that waits: its arguments are a tree, and what a longer yes would mean is said.
  await page.goto(`${origin}/#/review`);
  await page.getByRole("link", { name: /wants fake\/main to run order/ }).click();
  await page.getByText("Ann", { exact: true }).waitFor();
  await page.getByText("Why am I asked?").click();
  await page.getByText(/is not made without a yes/).waitFor();
  const holds = page.getByRole("combobox", { name: "A yes holds" });
  expect((await holds.inputValue()) === "once", "a yes that holds longer is preselected");
  await holds.selectOption("8h");
  await button("Allow for 8 hours").waitFor();
  await page.getByText(/with any arguments and without asking, for 8 hours/).waitFor();
  await see("review-call-tree");
  await holds.selectOption("once");
  await button("Allow this call").click();
  await page.getByText(/allowed.*\(a browser\)/).waitFor();
});
