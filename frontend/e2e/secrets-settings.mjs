// Secrets: set, replaced, deleted, and a keyring that is locked. Settings: problems, a rule and an answer taken
// away and put back, the folders, the seal key moved, the summary, signing out. No value is ever in a page.
import { expect, heard, story, tell } from "./browser.mjs";

await story("secrets-settings", async ({ page, origin, see }) => {
  const { FIRST, SECOND } = process.env; // the values
  const button = (name) => page.getByRole("button", { name, exact: true });
  const focused = (locator) => locator.evaluate((node) => node === document.activeElement);

  /** What a page holds, in whatever way: its source, and what is typed into its fields. */
  async function shows(value) {
    const typed = await page.locator("input").evaluateAll((all) => all.map((one) => one.value));
    return (await page.content()).includes(value) || typed.includes(value);
  }

  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(`${origin}/#/secrets`);
  await page.getByRole("heading", { name: "Secrets", level: 1 }).waitFor();
  await page.getByText("not set").waitFor();
  await page.getByText("answers", { exact: true }).waitFor();
  await see("secrets");

  // A value is typed unseen, kept, and gone from the page.
  await button("Set NOTES…").click();
  const value = page.getByLabel("Value");
  expect((await value.getAttribute("type")) === "password", "the value is shown while it is typed");
  expect(await focused(value), "the value has not the focus");
  await value.fill(`${FIRST} `);
  await page.getByText(/begins or ends with a space/).waitFor();
  await value.fill(FIRST);
  await see("secrets-set");
  await page.keyboard.press("Enter");
  await page.getByText("NOTES is kept.").waitFor();
  await page.getByText(/set just now/).waitFor();
  expect(!(await shows(FIRST)), "the value is in the page");
  tell("set");
  await heard();

  // To replace one Enter is not enough.
  await button("Replace NOTES…").click();
  await page.getByText(/cannot be brought back/).waitFor();
  await page.getByLabel("Value").fill(SECOND);
  await page.keyboard.press("Enter");
  await button("Replace the value").focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await button("Replace the value").isVisible(), "Enter replaced a value");
  await see("secrets-replace");
  await button("Replace the value").click();
  await page.getByText("NOTES is kept.").waitFor();
  expect(!(await shows(SECOND)), "the new value is in the page");
  tell("replaced");
  await heard();

  // One that no plugin asks for, with a name that is none first.
  await button("Add a secret…").click();
  await page.getByLabel("Name").fill("two words");
  await page.getByLabel("Value").fill("x");
  expect(await button("Keep it").isDisabled(), "a name that is none is taken");
  await page.getByLabel("Name").fill("NOTES");
  await button("Replace the value").waitFor();
  await page.getByLabel("Name").fill("SPARE");
  await button("Keep it").click();
  await page.getByText("SPARE is kept.").waitFor();
  await page.getByText("No plugin asks for it.").waitFor();

  // It is deleted after one question, which Enter does not answer with yes.
  await button("Delete NOTES…").click();
  expect(await focused(button("Do not delete")), "the way out has not the focus");
  await see("secrets-delete");
  await button("Delete NOTES").focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await button("Delete NOTES").isVisible(), "Enter deleted a secret");
  await page.keyboard.press("Escape");
  await button("Delete NOTES").waitFor({ state: "detached" });
  expect(await focused(button("Delete NOTES…")), "the keyboard is not where it was before the question");
  await button("Delete NOTES…").click();
  await button("Delete NOTES").click();
  await page.getByText("NOTES is deleted.").waitFor();
  await button("Set NOTES…").waitFor();
  tell("deleted");
  await heard();

  // The keyring is locked meanwhile: the page says what to do, and sees it when it is open again.
  await button("Ask again").click();
  await page.getByText("locked", { exact: true }).waitFor();
  await page.getByRole("heading", { name: "What to do" }).waitFor();
  await see("secrets-locked");
  tell("locked");
  await heard();
  await button("Ask again").click();
  await page.getByText("answers", { exact: true }).waitFor();

  // Settings.
  await page.goto(`${origin}/#/settings`);
  await page.getByRole("heading", { name: "Settings and health", level: 1 }).waitFor();
  await page.getByText(/browser that is signed in and the command line may answer/).waitFor();
  await page.getByText("Only the window changes this.").waitFor();
  await page.getByText("~/.agents/plugins").waitFor();
  await page.getByText("denied", { exact: true }).waitFor();
  await see("settings");

  // A folder is added, taken away after one question, and put back in its place.
  await button("Add a folder…").click();
  expect(await focused(page.getByLabel("Folder", { exact: true })), "the field has not the focus");
  await page.getByLabel("Folder", { exact: true }).fill("~/absent");
  await page.keyboard.press("Enter");
  await page.getByText("folder-missing").waitFor();
  await page.getByLabel("Folder", { exact: true }).fill("~/more");
  await button("Look there").click();
  await page.getByText("Plugins are looked for in ~/more.").waitFor();
  await see("settings-folder");
  await button("Remove: ~/more…").click();
  expect(await focused(button("Leave it")), "the way out has not the focus");
  await button("Do not look there").click();
  await page.getByText("Plugins are not looked for in ~/more any more.").waitFor();
  await button("Remove: ~/more…").waitFor({ state: "detached" });
  await button("Undo").click();
  await page.getByText("The folder is back in its place.").waitFor();
  await button("Remove: ~/more…").waitFor();

  // Start at login is off, and a program in a temporary folder is not started there.
  await page.getByText("Sallyport does not start when you log in.").waitFor();
  await button("Start when I log in").click();
  await page.getByText("autostart-place-refused").waitFor();
  await page.getByText("This build does not know where updates are announced").waitFor();

  // Less of the audit is kept, after one question; more without.
  const retention = page.getByRole("region", { name: "How much of the audit is kept" });
  await retention.getByRole("button", { name: "Change…" }).click();
  await retention.getByLabel("Days").fill("30");
  await retention.getByRole("button", { name: "Keep so much" }).click();
  expect(await focused(button("Leave it")), "the way out has not the focus");
  await see("settings-retention");
  await button("Keep less").click();
  await page.getByText(/kept for 30 days/).waitFor();
  await retention.getByRole("button", { name: "Change…" }).click();
  await retention.getByLabel("Days").fill("60");
  await retention.getByRole("button", { name: "Keep so much" }).click();
  await page.getByText(/kept for 60 days/).waitFor();

  // The diagnostics are a file, and hold no path.
  await button("Save a file").click();
  await page.getByText(/Saved as .*sallyport-diagnostics-/).waitFor();
  await button("Show what is in it").click();
  await button("Download it").waitFor();
  const inside = await page.locator("pre").last().innerText();
  expect(/"sealKeyIn"/.test(inside) && !/\/(tmp|home|root)\//.test(inside), `the diagnostics are\n${inside}`);
  await see("settings-diagnostics");
  await page.reload();
  await page.getByRole("heading", { name: "Settings and health", level: 1 }).waitFor();

  await button("Remove: fake/main:echo…").click();
  await page.getByText(/the rule that denies fake/).waitFor();
  expect(await focused(button("Leave it")), "the way out has not the focus");
  await see("settings-remove");
  await button("Remove the rule").focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await button("Remove the rule").isVisible(), "Enter removed a rule");
  await button("Remove the rule").click();
  await page.getByText("The rule for fake/main:echo is removed.").waitFor();
  await button("Remove: fake/main:echo…").waitFor({ state: "detached" });
  tell("removed");
  await heard();
  await button("Undo").click();
  await button("Remove: fake/main:echo…").waitFor();
  tell("put back");
  await heard();

  // The rule changes elsewhere, and the page sees it by itself.
  await button("Remove: fake/main:echo…").waitFor({ state: "detached" });

  await button("Move it into a file…").click();
  await button("Move it into a file").click();
  await page.getByText(/in a file that only you can read/).waitFor();
  await button("Move it into the keyring…").waitFor();
  await page.getByText("Summary for a report of a fault").click();
  await page.getByText("seal key file").waitFor();
  await see("settings-summary");
  const report = await page.locator("details pre").innerText();
  expect(!/NOTES|fake|\//.test(report.replace(/\d+\/\d+/g, "")), `the summary names something:\n${report}`);

  await button("Sign this browser out").click();
  await page.getByText("sallyport open", { exact: true }).waitFor();
});
