// A plugin is installed from a folder and looked at part by part: launch, tools, files and their texts, skills,
// permissions, activity, error output. It is started, stopped, disabled, updated, put back, revoked and removed.
import { expect, heard, story, tell } from "./browser.mjs";

await story("plugins", async ({ page, origin, see }) => {
  const { BUNDLE } = process.env;
  const button = (name) => page.getByRole("button", { name, exact: true });
  const tab = (name) => page.getByRole("tab", { name, exact: true });
  const focused = (locator) => locator.evaluate((node) => node === document.activeElement);

  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(`${origin}/#/plugins`);
  await page.getByText("2 connectors", { exact: true }).waitFor();
  await see("plugins");

  // Where the plugin is, said in words; nothing is uploaded.
  await button("Install…").click();
  const path = page.getByRole("textbox", { name: "Path of the folder" });
  expect(await focused(path), "the path has not the focus");
  expect(await button("Look at it…").isDisabled(), "nothing can be looked at");
  for (const kind of ["An archive", "An npm package", "A git repository"])
    await page.getByRole("radio", { name: kind }).check();
  await page.getByRole("textbox", { name: "Whole hash of the commit" }).waitFor();
  await page.getByRole("radio", { name: "An archive" }).check();
  await page.getByText("there is nothing to upload").waitFor();
  await see("install-form");
  await page.getByRole("radio", { name: "A folder" }).check();
  await path.fill("relative/path");
  await button("Look at it…").click();
  await page.getByRole("alert").waitFor();
  await path.fill(BUNDLE);
  await button("Look at it…").click();
  const install = button("Install");
  await install.waitFor();
  expect(await focused(button("Deny")), "Deny has not the focus");
  await see("install-review");
  await install.click();
  await page.getByRole("link", { name: "Go to the plugin" }).click();
  await page.getByText("1 of 3", { exact: true }).waitFor();
  await page.getByRole("link", { name: /jotter\/main/ }).click();
  await page.getByRole("heading", { name: "jotter/main" }).waitFor();
  await see("plugin-new");

  // Before it is approved: its files can be read, and are those on disk.
  await tab("Files").click();
  await page.getByText("not approved yet").waitFor();
  await page.getByRole("button", { name: /^notice\.txt/ }).click();
  await page.getByRole("region", { name: "On disk now" }).getByText("first line").waitFor();
  expect(page.url().endsWith("/files"), "the tab is not in the address");
  await tab("Overview").click();
  await button("Review…").click();
  await button("Allow to run…").click();
  await page.getByRole("checkbox", { name: "echo", exact: true }).check();
  await button("Enable 1 tool").click();
  await page.getByRole("heading", { name: "jotter/main" }).waitFor();

  // Started and stopped by hand, with a way back.
  await button("Start").or(button("Stop")).first().waitFor();
  if (await button("Start").isVisible()) await button("Start").click();
  await button("Stop").waitFor();
  await button("Restart").click();
  await page.getByText("It was started again.").waitFor();
  await button("Stop").click();
  await page.getByText("It was stopped. The next call starts it again.").waitFor();
  await see("plugin-stopped");
  await button("Undo").click();
  await page.getByText("It runs.").waitFor();
  await button("Disable").click();
  await page.getByText("It does not run until you enable it.").waitFor();
  await button("Undo").click();
  await page.getByText("It may run again.").waitFor();

  // The parts, by keyboard.
  await tab("Overview").focus();
  for (const [name, word] of [
    ["Launch", "Exactly what is run or dialled"],
    ["Tools", "Agents may call 1 tool"],
    ["Files", "as approved"],
    ["Skills", "how to commit"],
    ["Permissions", "Connections of its own process"],
    ["Activity", "Open in Audit"],
    ["Logs", "It wrote nothing.|error output"],
  ]) {
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tabpanel", { name }).getByText(new RegExp(word)).first().waitFor();
    expect(await focused(tab(name)), `the arrow key does not lead to ${name}`);
    expect(page.url().endsWith(`/${name.toLowerCase()}`), `${name} is not in the address`);
    await see(`plugin-${name.toLowerCase()}`);
  }
  expect((await page.getByRole("tablist").count()) === 1, "there is not one list of tabs");
  const depth = await page.evaluate(() => history.length);
  await page.keyboard.press("ArrowLeft");
  expect((await page.evaluate(() => history.length)) === depth, "tabs fill the history");

  // Deep links, and what changes on disk while somebody looks.
  await page.goto(`${origin}/#/plugins/jotter/main/files`);
  await page.getByRole("tabpanel", { name: "Files" }).getByText("as approved").waitFor();
  tell("change it");
  await heard();
  await page.getByText("2 differ from the approved copy").waitFor();
  await page.getByRole("checkbox", { name: "Only what changed" }).check();
  await page.getByRole("button", { name: /notice\.txt/ }).click();
  await page.getByRole("region", { name: "On disk now" }).getByText("other line").waitFor();
  expect(
    (await page.getByRole("region", { name: "On disk now" }).locator(".mark").count()) > 0,
    "what is invisible in a file is not marked",
  );
  await button("As approved").click();
  await page.getByRole("region", { name: "As approved" }).getByText("first line").waitFor();
  await see("plugin-file");
  await page.getByRole("checkbox", { name: "Only what changed" }).uncheck();
  await page.getByRole("button", { name: /server\.exe/ }).click();
  await page.getByText(/too large to be shown|This is no text/).waitFor();
  await tab("Overview").click();
  await page.getByRole("heading", { name: "Changed since it was approved" }).waitFor();
  await see("plugin-changed");

  // A skill is read as it was approved.
  await tab("Skills").click();
  await page.getByRole("button", { name: "Read commit" }).click();
  await page.getByText("Do it in small steps.").waitFor();
  await see("plugin-skill");

  // What is written to the error output is text: paused, searched, never obeyed.
  await page.goto(`${origin}/#/plugins/loud/main/logs`);
  await page.getByRole("tabpanel", { name: "Logs" }).waitFor();
  await page.getByText("It wrote nothing.").waitFor();
  tell("run the loud one");
  await heard();
  const log = page.getByRole("region", { name: "What it wrote to its error output" });
  await log.waitFor();
  await button("Pause").click();
  await page.getByText("Paused: newer lines are not shown.").waitFor();
  await page.getByRole("searchbox", { name: "Search the lines" }).fill("no such line at all");
  await page.getByText("No line matches.").waitFor();
  await page.getByRole("searchbox", { name: "Search the lines" }).fill("");
  await log.waitFor();
  await see("plugin-log");
  await button("Go on").click();

  // Activity leads to all of one record.
  await tab("Activity").click();
  const happened = page.getByRole("region", { name: "What happened, newest first" });
  await happened.getByRole("button").first().click();
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("combobox", { name: "Result" }).selectOption("refused");
  await page.getByText("Nothing on record matches.").waitFor();

  // Rules of its own, taken away and put back.
  await tab("Permissions").click();
  await page.getByText("loud/main:echo").first().waitFor();
  await page.getByText("not enforced").first().waitFor();
  await page.getByRole("button", { name: "Remove: loud/main:echo…" }).click();
  expect(await focused(button("Leave it")), "the way out has not the focus");
  await button("Remove the rule").click();
  await button("Undo").click();
  await page.getByRole("button", { name: "Remove: loud/main:echo…" }).waitFor();
  await see("plugin-rules");

  // The next version, and the one before again.
  await page.goto(`${origin}/#/plugins/jotter/main`);
  await button("Look for an update…").click();
  await button("Update").waitFor();
  await see("update-review");
  await button("Update").click();
  await page.getByRole("link", { name: "Go to the plugin" }).waitFor();
  await page.goto(`${origin}/#/plugins/jotter/main`);
  await page.getByText("2.0.0").first().waitFor();
  await button("Put it back…").click();
  await page.getByRole("button", { name: "Put it back", exact: true }).click();
  await page.getByRole("link", { name: "Go to the plugin" }).waitFor();

  // Ending the approval is asked about once, and Enter is no yes.
  await page.goto(`${origin}/#/plugins/loud/main`);
  await button("Revoke…").click();
  const sure = page.getByRole("alertdialog", { name: /Revoke the approval of loud\/main/ });
  await sure.waitFor();
  expect(await focused(button("Cancel")), "the way out has not the focus");
  await see("plugin-revoke");
  await button("Revoke it").focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await sure.isVisible(), "Enter revoked an approval");
  await page.keyboard.press("Tab");
  expect(await focused(button("Cancel")), "the keyboard leaves the question");
  await page.keyboard.press("Escape");
  await sure.waitFor({ state: "detached" });
  expect(await focused(button("Revoke…")), "the keyboard is not where it was before the question");
  await button("Revoke…").click();
  await button("Revoke it").click();
  await page.getByText("needs approval").first().waitFor();

  // Removed, with what it has stored; and a way to have it again.
  await page.goto(`${origin}/#/plugins/jotter/main`);
  await page.getByRole("heading", { name: "Manage" }).waitFor();
  expect(
    await page.getByRole("radio", { name: "Keep it", exact: true }).isChecked(),
    "what it has stored would go without a click",
  );
  await page.getByRole("radio", { name: /Delete it too/ }).check();
  await button("Remove…").click();
  await button("Remove").waitFor();
  await see("uninstall-review");
  await button("Remove").click();
  await page.getByRole("link", { name: "Install it again…" }).click();
  expect((await path.inputValue()).endsWith("bundle"), "the form does not know where it came from");
  await page.goto(`${origin}/#/plugins`);
  await page.getByText("2 connectors", { exact: true }).waitFor();
});
