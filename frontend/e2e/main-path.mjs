// First run, approve, a change, approve again from the difference, deny another, audit. Every page is looked at
// by axe, and a picture of each is kept in SHOTS at three sizes.
import { expect, heard, story, tell } from "./browser.mjs";

await story("main-path", async ({ context, page, origin, see }) => {
  // The code of the link stays in no address.
  await page.getByRole("heading", { name: "Home" }).waitFor();
  expect(!page.url().includes("code="), "the one-time code is still in the address");
  await see("home-first");

  // A newcomer's way: the first plugin, review, allow, choose, done.
  await page.getByRole("link", { name: /Look at the first plugin/ }).click();
  await page.getByRole("heading", { name: "fake/main" }).waitFor();
  await see("plugin");
  await page.getByRole("button", { name: "Review…" }).click();
  await page.getByText("fake 1.0.0 wants to run a program on this computer.").waitFor();
  await see("review-run");

  const deny = page.getByRole("button", { name: "Deny" });
  expect(await deny.evaluate((node) => node === document.activeElement), "Deny has not the focus");
  const allow = page.getByRole("button", { name: "Allow to run…" });
  await allow.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await allow.isVisible(), "Enter approved");
  await allow.click();

  await page.getByText(/Which of its \d+ tools may agents call/).waitFor();
  const boxes = page.locator("fieldset input[type=checkbox]");
  expect((await boxes.count()) > 1, "no tools are on offer");
  expect(
    (await page.locator("fieldset input[type=checkbox]:checked").count()) === 0,
    "a tool is preselected",
  );
  await see("review-tools");
  await page.getByRole("checkbox", { name: "echo", exact: true }).check();
  await page.getByRole("button", { name: "Enable 1 tool" }).click();
  await page.getByRole("heading", { name: "fake/main" }).waitFor();
  await page.getByText("enabled", { exact: true }).waitFor();

  // The agent calls; then a file changes, and the page shows it by itself.
  tell("approved");
  await heard();
  await page.goto(`${origin}/#/`);
  await page
    .getByRole("link", { name: /fake\/main/ })
    .first()
    .waitFor();
  await see("home-needs");
  await page
    .getByRole("link", { name: /fake\/main/ })
    .first()
    .click();
  await page.getByRole("button", { name: "Review…" }).click();
  await page.getByText(/1 file modified, nothing else/).waitFor();
  await page.getByText("second line").waitFor();
  await see("review-changed");
  const inView = await page
    .getByText("second line")
    .evaluate((node) => node.getBoundingClientRect().bottom < innerHeight);
  expect(inView, "the change is not visible without a scroll");
  await page.getByRole("button", { name: "Side by side" }).click();
  await page.getByRole("button", { name: "Allow to run…" }).click();
  await page.getByText(/Which of its \d+ tools may agents call/).waitFor();
  await page.getByRole("button", { name: "Those allowed before and unchanged" }).click();
  expect(
    (await page.locator("fieldset input[type=checkbox]:checked").count()) === 1,
    "the tool allowed before is not chosen",
  );
  await page.getByRole("button", { name: "Enable 1 tool" }).click();
  await page.getByText("enabled", { exact: true }).waitFor();

  // Another one is denied.
  await page.goto(`${origin}/#/plugins`);
  await page.getByRole("searchbox").fill("other");
  await page.getByRole("link", { name: /other\/main/ }).click();
  await page.getByRole("button", { name: "Review…" }).click();
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByText(/denied.*\(a browser\)/).waitFor();
  await see("review-denied");
  tell("denied");
  await heard();

  // A call that waits is answered here; those that were answered are in a section of their own.
  await page.goto(`${origin}/#/review`);
  const waiting = page.locator("main li:not(section li)");
  await waiting.getByRole("link", { name: /wants fake\/main to run echo/ }).click();
  await page.getByText("see me").waitFor();
  await see("review-call");
  await page.getByRole("button", { name: "Allow this call" }).click();
  await page.getByText(/allowed.*\(a browser\)/).waitFor();

  // What a plugin writes is text, whatever it is.
  await page.goto(`${origin}/#/plugins`);
  await page.getByRole("searchbox").fill("");
  await see("plugins");
  expect(
    (await page.locator("main script, main img, main iframe").count()) === 0,
    "a plugin's text became markup",
  );

  // Without the cookie the page says how to get in.
  await context.clearCookies();
  await page.reload();
  await page.getByText("sallyport open", { exact: true }).waitFor();
  await see("signed-out");
});
