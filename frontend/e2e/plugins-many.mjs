// A thousand plugins in one list: few rows are in the page, typing and scrolling go on. The numbers are told; how
// fast a machine is decides nothing.
import { expect, story } from "./browser.mjs";

await story("plugins-many", async ({ page, origin, see }) => {
  await page.getByRole("heading", { name: "Home" }).waitFor();
  const opened = Date.now();
  await page.goto(`${origin}/#/plugins`);
  await page.getByText(/^1,0\d\d connectors$/).waitFor();
  const numbers = { listMs: Date.now() - opened };
  const list = page.getByRole("region", { name: "Plugins" });
  const rows = () => list.getByRole("listitem").count();
  numbers.rows = await rows();
  expect(numbers.rows < 40, `${numbers.rows} rows are in the page`);
  await see("plugins-many");

  // Every letter is followed by a picture of what it left.
  const search = page.getByRole("searchbox", { name: "Search" });
  await search.focus();
  numbers.letterMs = [];
  for (const letter of "plugin-0777") {
    const before = Date.now();
    await page.keyboard.press(letter);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    numbers.letterMs.push(Date.now() - before);
  }
  await page.getByText(/^1 of 1,0\d\d$/).waitFor();
  await list.getByRole("link", { name: /plugin-0777\/main/ }).waitFor();
  expect(page.url().includes("search=plugin-0777"), "the search is not in the address");
  await search.fill("");
  await page.getByText(/^1,0\d\d connectors$/).waitFor();
  await page.getByRole("combobox", { name: "State" }).selectOption("approval_required");
  await page.getByRole("combobox", { name: "From" }).selectOption("~/.agents/plugins");
  await page.getByText(/^1,001 of 1,002$/).waitFor();

  // To the end and to and fro.
  const jumps = await list.evaluate(async (port) => {
    const frames = [];
    for (let i = 0; i <= 60; i++) {
      const before = performance.now();
      port.scrollTop = i === 60 ? port.scrollHeight : (port.scrollHeight / 60) * ((i * 37) % 60);
      await new Promise(requestAnimationFrame);
      await new Promise((resolve) => setTimeout(resolve));
      frames.push(performance.now() - before);
    }
    frames.sort((a, b) => a - b);
    return { median: Math.round(frames[30]), worst: Math.round(frames[60]) };
  });
  numbers.scrollMs = jumps;
  await list.getByRole("link", { name: /plugin-0999\/main/ }).waitFor();
  numbers.rowsAtEnd = await rows();
  expect(numbers.rowsAtEnd < 40, `${numbers.rowsAtEnd} rows are in the page at its end`);

  // One of them, and back to the same list.
  await list.getByRole("link", { name: /plugin-0999\/main/ }).click();
  await page.getByRole("heading", { name: "plugin-0999/main" }).waitFor();
  await page.goBack();
  await page.getByText(/^1,001 of 1,002$/).waitFor();

  // A name, a title and a path as hostile as a manifest may have them.
  await page.goto(`${origin}/#/plugins?search=hostile`);
  await list.getByRole("link", { name: /hostile\/main/ }).click();
  await page.getByRole("heading", { name: "hostile/main" }).waitFor();
  expect(
    (await page.locator("main script, main img, main iframe").count()) === 0,
    "a plugin's text became markup",
  );
  await page.getByText("U+202E").first().waitFor();
  await see("plugin-hostile");
  await page.goto(`${origin}/#/plugins/hostile/main/files`);
  await page.getByRole("region", { name: "Files" }).getByText("U+202E").first().waitFor();
  await see("plugin-hostile-files");
  // Eighty thousand characters, none of which can be seen: each is a mark, and the page bears as many as it shows.
  await page.getByRole("button", { name: /marks\.txt/ }).click();
  await page.getByRole("button", { name: /^Show all/ }).waitFor();

  console.error(`a thousand plugins: ${JSON.stringify(numbers)}`);
});
