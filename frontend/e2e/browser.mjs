// A person with a browser, for the Go tests of the pages: they start the sidecar and this, and give it a
// one-time address. It fails with what the person would have seen.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** How long a page may take to show what it has to, on a busy machine. */
const patience = 120_000;

/** Opens the pages and collects what no page may do: errors, violations of the policy, requests elsewhere. */
async function openPages(url) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(patience);
  const wrong = [];
  const origin = new URL(url).origin;
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of (401|404|409)/.test(message.text()))
      wrong.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
      wrong.push(`request: ${request.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) =>
      console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`),
    );
  });
  await page.goto(url);
  return { browser, context, page, wrong, origin };
}

/** One person's way through the pages, from a one-time address to its end. It is told when it is done; where it ends
 * before, a picture and the text say what the person saw. */
export async function story(name, run) {
  const { browser, context, page, wrong, origin } = await openPages(process.env.URL_ONCE);
  try {
    await run({ context, page, origin, see: eyes(page) });
    expect(wrong.length === 0, `the pages did what they may not:\n${wrong.join("\n")}`);
    tell("done");
  } catch (error) {
    const { SHOTS } = process.env;
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/failed-${name}.png` }).catch(() => {});
    const seen = await page.innerText("body", { timeout: 10_000 }).catch(() => "");
    console.error([String(error), ...wrong, seen.slice(0, 8000)].join("\n"));
    process.exitCode = 1;
  } finally {
    await browser.close();
    process.exit();
  }
}

/** WCAG 2.2 AA by axe; the policy of the page does not let it be added as a script element. */
export async function accessible(page, where) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() =>
    axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }),
  );
  if (found.violations.length > 0) {
    const said = found.violations.map(
      (v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join("; ")})`,
    );
    throw new Error(`${where} is not accessible:\n${said.join("\n")}`);
  }
}

/** Looks at a page: by axe in light and dark, at its width at every size, and a picture of each is kept in SHOTS. */
function eyes(page) {
  const shots = process.env.SHOTS;
  return async function see(name) {
    await accessible(page, name);
    for (const [size, width, height, scheme] of [
      ["1280x800", 1280, 800, "light"],
      ["900x600", 900, 600, "light"],
      ["dark", 1280, 800, "dark"],
    ]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      // A colour on its way to another one has a contrast of its own.
      await page.evaluate(() => Promise.allSettled(document.getAnimations().map((one) => one.finished)));
      if (scheme === "dark") await accessible(page, `${name} in the dark`);
      if (shots) await page.screenshot({ path: `${shots}/${name}-${size}.png` });
      const wide = await tooWide(page);
      expect(wide === "", `${name} is wider than the window at ${size}: ${wide}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: "light" });
  };
}

/** What makes the page wider than it is: the main part scrolls by itself, so the document alone does not tell. */
function tooWide(page) {
  return page.evaluate(() => {
    const all = [document.documentElement, document.querySelector("main")].filter(Boolean);
    const over = all.find((node) => node.scrollWidth > node.clientWidth);
    if (over === undefined) return "";
    const edge = over.getBoundingClientRect().right;
    const deepest = [...over.querySelectorAll("*")]
      .filter((n) => n.getBoundingClientRect().right > edge + 1)
      .at(-1);
    return deepest ? deepest.outerHTML.slice(0, 200) : over.tagName;
  });
}

export function expect(condition, sentence) {
  if (!condition) throw new Error(sentence);
}

/** Waits for a line from the test that runs this, after telling it something. */
export function tell(line) {
  process.stdout.write(line + "\n");
}

const input = [];
let waiting;
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  input.push(...chunk.split("\n").filter(Boolean));
  waiting?.();
});
export async function heard() {
  while (input.length === 0) await new Promise((resolve) => (waiting = resolve));
  return input.shift();
}
