// A console in a browser: off at first, and said why; then a real terminal by keyboard: colours beyond the palette,
// its size, its scrollback, copying, the way out for the keyboard, and its end with the approval.
import { expect, heard, story, tell } from "./browser.mjs";

await story("console", async ({ context, page, origin, see }) => {
  const button = (name) => page.getByRole("button", { name, exact: true });

  /** What the terminal shows now. */
  const lines = () => page.locator(".xterm-rows > div").allInnerTexts();
  async function shows(want, what = String(want)) {
    for (let tries = 0; tries < 600; tries++) {
      const text = (await lines()).map((line) => line.replaceAll("\u00a0", " ").trimEnd()).join("\n");
      if (typeof want === "string" ? text.includes(want) : want.test(text)) return text;
      await page.waitForTimeout(100);
    }
    throw new Error(`the terminal never shows ${what}:\n${(await lines()).join("\n")}`);
  }
  const type = (text) => page.keyboard.type(text);
  const enter = (text) => type(`${text}\n`);

  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("heading", { name: "Home" }).waitFor();
  await page.goto(`${origin}/#/plugins/fake/main`);
  await page.getByRole("link", { name: "Console", exact: true }).click();
  await page.getByText("a console opens in the window or in a terminal, and not here").waitFor();
  await page.getByText(/sallyport console --in-browser on/).waitFor();
  expect(!(await button("Open a console").isVisible()), "a console is offered where there is none");
  await see("console-off");
  tell("off");
  await heard();

  // The operator says so in a terminal, and the page sees it by itself.
  await button("Open a console").waitFor();
  await see("console-start");
  await button("Open a console").click();
  await page.locator(".xterm-screen").waitFor();
  await enter("echo hel''lo from $(basename $PLUGIN_DATA)");
  await shows(/hello from \S+/);
  await enter(
    "printf '\\033[38;2;200;100;50mtrue''colour\\033[0m \\033[1;31mred\\033[0m \\033[3mslanted\\033[0m\\n'",
  );
  await shows("truecolour red slanted");
  const colour = await page
    .locator(".xterm-rows span", { hasText: "truecolour" })
    .last()
    .evaluate((node) => getComputedStyle(node).color);
  expect(colour !== "" && (await shows("truecolour")) !== "", "no colour");
  const [r, g, b] = colour.match(/\d+/g).map(Number);
  expect(r > g && g > b, `the colour of a program is ${colour}`);
  await enter("stty size; echo size''d");
  const wide = await shows("sized");
  const before = /(\d+) (\d+)\nsized/.exec(wide);
  expect(
    before !== null && Number(before[1]) > 20 && Number(before[2]) > 90,
    `the first size is ${before?.[0]}`,
  );
  await see("console");
  await page.setViewportSize({ width: 900, height: 600 });
  await enter("sleep 0.5; stty size; echo nar''row");
  const small = /(\d+) (\d+)\nnarrow/.exec(await shows("narrow"));
  expect(
    small !== null && Number(small[1]) < Number(before[1]) && Number(small[2]) < Number(before[2]),
    `after making the window smaller the size is ${small?.[0]}, and was ${before[0]}`,
  );
  await page.setViewportSize({ width: 1280, height: 800 });

  // Ten thousand lines can be looked back at, and not more.
  await enter("clear; seq 1 12000; echo count''ed");
  await shows("counted");
  await page.keyboard.down("Shift");
  for (let i = 0; i < 600; i++) await page.keyboard.press("PageUp");
  await page.keyboard.up("Shift");
  const top = Number((await shows(/^\d+$/m)).split("\n").find((line) => /^\d+$/.test(line)));
  expect(top > 1500 && top < 2200, `the oldest line is ${top}`);
  await enter("clear; echo copy''me");
  await shows(/^copyme/m);

  // Copying by the keys of terminals, and Ctrl-C stays the program's.
  const word = page.locator(".xterm-rows > div", { hasText: /^copyme/ }).first();
  const box = await word.boundingBox();
  await page.mouse.dblclick(box.x + 20, box.y + box.height / 2);
  await page.keyboard.press("Control+Shift+C");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied === "copyme", `what is copied is ${JSON.stringify(copied)}`);
  await enter("sh -c 'echo run\"\"ning; exec sleep 600'"); // what is typed ahead of Ctrl-C is thrown away, by every terminal
  await shows(/^running/m);
  await page.keyboard.press("Control+c");
  await shows("^C");
  await enter("echo inter''rupted");
  await shows("interrupted");

  // Tab is the program's; Shift+Escape gets the keyboard out.
  await page.keyboard.press("Shift+Escape");
  expect(
    await button("Close the console").evaluate((node) => node === document.activeElement),
    "Shift+Escape does not leave the terminal",
  );

  // Another page and back: the console is still there, with what it has printed.
  await page.goto(`${origin}/#/settings`);
  await page.getByText("A browser that is signed in may open consoles of approved plugins.").waitFor();
  await page.goto(`${origin}/#/console`);
  await page.getByRole("link", { name: "fake/main" }).click();
  await shows("interrupted");
  await button("Screen reader mode").click();
  await page.locator(".xterm-accessibility").waitFor({ state: "attached" });
  tell("open");
  await heard();

  // It ends with the approval, and says so.
  await page.getByText(/its approval was revoked/).waitFor();
  await see("console-ended");
  expect(
    (await page.evaluate(() => document.adoptedStyleSheets.length)) === 0,
    "a style sheet of the terminal is left",
  );
});
