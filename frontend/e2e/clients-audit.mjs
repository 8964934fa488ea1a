// Agents are added, see more and less, get another token and are removed; a program is connected and undone, from
// its exact difference; the audit is filtered, read to its 100,000th record, verified and exported.
import { readFile } from "node:fs/promises";
import { expect, heard, story, tell } from "./browser.mjs";

await story("clients-audit", async ({ page, origin, see }) => {
  const main = page.locator("main");

  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(`${origin}/#/clients`);
  await page.getByText("No agent is known.").waitFor();

  // A new agent sees nothing, and its token is shown once.
  await page.getByRole("button", { name: "Add an agent…" }).click();
  const name = page.getByRole("textbox", { name: "Name" });
  expect(await name.evaluate((node) => node === document.activeElement), "the name has not the focus");
  await name.fill("claude & co");
  expect(
    await page.getByRole("radio", { name: /Nothing yet/ }).isChecked(),
    "a new agent would see something",
  );
  await see("clients-add");
  await page.getByRole("button", { name: "Add it" }).click();
  const shown = page.getByRole("group", { name: "The token of claude & co" });
  await shown.waitFor();
  await see("clients-token");
  const token = await shown.locator("code").first().innerText();
  expect(/^sp_/.test(token), "no token is shown");
  await shown.getByRole("button", { name: "I have copied it" }).click();
  await shown.waitFor({ state: "detached" });
  expect(!(await page.content()).includes(token), "the token stays in the page");
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]),
  );
  expect(!kept.includes(token) && !page.url().includes(token), "the token stays in the browser");

  // It leads on to what it sees: one tool at a time, with a way back.
  await page.getByRole("heading", { name: "claude & co" }).waitFor();
  await main.locator("summary").first().click();
  await page.getByRole("button", { name: "Let it see fake/main:echo" }).click();
  await main.locator("dd").getByText("fake/main:echo").waitFor();
  await page.getByRole("button", { name: "Let it see fake/main", exact: true }).click();
  await main.locator("dd").getByText("fake/main", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Take away fake/main:echo" }).click();
  await page.getByText("It was taken away").waitFor();
  await see("client");
  await page.getByRole("button", { name: "Undo" }).click();
  await main.locator("dd").getByText("fake/main", { exact: true }).waitFor();

  // Everything is asked about once, and Enter does not say yes.
  await page.getByRole("button", { name: "Let it see everything…" }).click();
  const widen = page.getByRole("button", { name: "Let it see everything", exact: true });
  await widen.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await widen.isVisible(), "Enter widened what an agent sees");
  await page.getByRole("button", { name: "Cancel" }).click();

  await page.getByRole("button", { name: "Give it another token…" }).click();
  await page.getByRole("button", { name: "Give it another token", exact: true }).click();
  await shown.waitFor();
  expect((await shown.locator("code").first().innerText()) !== token, "the token is the old one");
  await shown.getByRole("button", { name: "I have copied it" }).click();
  await page.getByRole("button", { name: "Remove it…" }).click();
  const keep = page.getByRole("button", { name: "Keep it" });
  expect(await keep.evaluate((node) => node === document.activeElement), "the way out has not the focus");
  await see("client-remove");
  await page.getByRole("button", { name: "Remove it", exact: true }).click();
  await page.getByText("No agent is known.").waitFor();
  await see("clients");

  // A program, from its exact difference, and back.
  await page.getByRole("link", { name: /Cursor/ }).click();
  await page.getByRole("button", { name: "Show what connecting would write" }).click();
  const difference = page.getByRole("region", { name: "Difference" });
  await difference.getByText(/"sallyport": \{/).waitFor();
  await see("connect");
  tell("looked");
  await heard();
  const write = page.getByRole("button", { name: "Write this" });
  await write.focus();
  await page.keyboard.press("Enter");
  await page.waitForTimeout(200);
  expect(await write.isVisible(), "Enter wrote into a file");
  await write.click();
  await page.getByText(/^Written into/).waitFor();
  await see("connected");
  tell("connected");
  await heard();
  await page.getByRole("button", { name: "Undo…" }).click();
  await page.getByText("This puts back, byte for byte,").waitFor();
  await see("connect-undo");
  await page.getByRole("button", { name: "Undo it" }).click();
  await page.getByText(/^Undone in/).waitFor();
  tell("undone");
  await heard();

  // A server is taken over; it is approved by nothing of this.
  await page.goto(`${origin}/#/clients`);
  await page.getByRole("checkbox", { name: /Leave credentials where they are/ }).check();
  await page.getByRole("button", { name: "Import weather" }).click();
  await page.getByText("Imported. It does not run before you approve it.").waitFor();
  await page.getByRole("link", { name: "imported" }).waitFor();
  await see("clients-import");

  // The audit: a chart with its table, filters in the address, one record whole.
  await page.goto(`${origin}/#/audit`);
  const chart = page.getByRole("img", { name: /Last 7 days: .* calls/ });
  await chart.waitFor();
  const timeline = page.getByRole("region", { name: "What happened, newest first" });
  await timeline.getByText("Imported").first().waitFor();
  await see("audit");
  await page.getByText("As a table").click();
  expect((await page.getByRole("row").count()) === 8, "the table has not seven days");
  await see("audit-table");
  await page.getByText("As a table").click();
  await page.getByRole("combobox", { name: "Action" }).selectOption("client.rotate");
  await page.getByText("1 record", { exact: true }).waitFor();
  expect(page.url().includes("action=client.rotate"), "the filter is not in the address");
  await timeline.getByRole("button", { name: /Agent got another token/ }).click();
  await page.getByRole("dialog").getByText("claude & co").waitFor();
  await see("audit-record");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const back = timeline.getByRole("button", { name: /Agent got another token/ });
  expect(await back.evaluate((node) => node === document.activeElement), "the keyboard is lost");
  await page.getByRole("combobox", { name: "Result" }).selectOption("refused");
  await page.getByText("Nothing on record matches.").waitFor();
  await see("audit-none");

  // To the end, and smooth there.
  await page.goto(`${origin}/#/audit`);
  await timeline.getByText("Imported").first().waitFor();
  const far = await timeline.evaluate(async (port) => {
    const begin = performance.now();
    while (!/records, all that there are/.test(document.querySelector("main").innerText)) {
      if (performance.now() - begin > 120_000) return undefined;
      port.scrollTop = port.scrollHeight;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const frames = [];
    for (let i = 0; i < 60; i++) {
      const before = performance.now();
      port.scrollTop = (port.scrollHeight / 60) * ((i * 37) % 60);
      await new Promise(requestAnimationFrame);
      await new Promise((resolve) => setTimeout(resolve));
      frames.push(performance.now() - before);
    }
    return {
      took: Math.round(performance.now() - begin),
      median: Math.round(frames.sort((a, b) => a - b)[30]),
      rows: port.querySelectorAll("li").length,
      setSize: Number(port.querySelector("li").getAttribute("aria-setsize")),
    };
  });
  expect(far !== undefined, "the end of the audit was not reached in two minutes");
  console.error(`the whole audit: ${JSON.stringify(far)}`);
  expect(far.setSize > 100_000, `only ${far.setSize} records are there`);
  expect(far.rows < 60, `${far.rows} rows are in the page`);
  expect(far.median < 300, `a jump takes ${far.median} ms`);

  await page.getByRole("button", { name: "Verify" }).click();
  await page.getByText(/records verify/).waitFor({ timeout: 60_000 });
  await page.getByRole("combobox", { name: "Action" }).selectOption("client.rotate");
  await page.getByText("1 record", { exact: true }).waitFor();
  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export as CSV" }).click();
  const file = await readFile(await (await saving).path(), "utf8");
  expect(file.startsWith("seq,at,actor") && file.includes("claude & co"), `the export is ${file}`);
});
