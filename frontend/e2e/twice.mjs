// Every page as somebody sees it who needs it twice as large: a window of 1280x800 at 200 % is 640x400 to the page.
// Nothing is cut off sideways, and everything that can be pressed can be brought into view and is on top there.
import { accessible, expect, story } from "./browser.mjs";

const shots = process.env.SHOTS;

await story("twice", async ({ page, origin }) => {
  await page.setViewportSize({ width: 640, height: 400 });

  /** What is wider than the page, or cannot be reached. */
  const unreachable = () =>
    page.evaluate(() => {
      const said = [];
      const name = (node) =>
        `${node.tagName.toLowerCase()} "${(node.getAttribute("aria-label") ?? node.innerText ?? "").slice(0, 40)}"`;
      for (const box of [document.documentElement, document.querySelector("main")])
        if (box.scrollWidth > box.clientWidth + 1)
          said.push(`${box.tagName} scrolls sideways: ${box.scrollWidth} in ${box.clientWidth}`);
      for (const node of document.querySelectorAll(
        "a[href], button, input, select, textarea, summary, [role=tab]",
      )) {
        if (!node.checkVisibility() || node.disabled || node.matches(".skip")) continue;
        node.scrollIntoView({ block: "center", inline: "nearest" });
        const seen = [...node.getClientRects()].find((r) => r.width > 0 && r.height > 0);
        if (!seen) continue;
        if (seen.left < -1 || seen.right > innerWidth + 1 || seen.top < -1 || seen.bottom > innerHeight + 1) {
          said.push(`${name(node)} is not in view: ${Math.round(seen.left)},${Math.round(seen.top)}`);
          continue;
        }
        const top = document.elementFromPoint(seen.left + seen.width / 2, seen.top + seen.height / 2);
        if (top && !node.contains(top) && !top.contains(node))
          said.push(`${name(node)} is under ${name(top)}`);
      }
      return said;
    });

  await page.getByRole("heading", { name: "Home" }).waitFor();
  const found = [];
  for (const path of [
    "",
    "review",
    `review/${process.env.QUESTION}`,
    "plugins",
    "plugins?install=",
    ...["", "/launch", "/tools", "/files", "/skills", "/permissions", "/activity", "/logs"].map(
      (tab) => `plugins/fake/main${tab}`,
    ),
    "secrets",
    "clients",
    "clients/claude",
    "audit",
    "settings",
  ]) {
    await page.goto(`${origin}/#/${path}`);
    await page.locator("main h1").waitFor();
    // What is still being asked for is not there to be looked at.
    await page
      .getByText("Loading…")
      .first()
      .waitFor({ state: "detached" })
      .catch(() => {});
    await page.waitForTimeout(300);
    const said = await unreachable();
    found.push(...said.map((one) => `#/${path}: ${one}`));
    await accessible(page, `#/${path} at 200 %`);
    if (shots) await page.screenshot({ path: `${shots}/twice-${path.replace(/\W+/g, "_") || "home"}.png` });
  }
  expect(found.length === 0, `at 200 %:\n${found.join("\n")}`);

  // A question over the page fits into it, too.
  await page.goto(`${origin}/#/plugins/fake/main`);
  await page.getByRole("button", { name: "Revoke…" }).click();
  const sure = page.getByRole("alertdialog");
  await sure.waitFor();
  const box = await sure.boundingBox();
  expect(
    box.x >= 0 && box.y >= 0 && box.x + box.width <= 640 && box.y + box.height <= 400,
    `the question lies at ${JSON.stringify(box)}`,
  );
  await accessible(page, "a question at 200 %");
  if (shots) await page.screenshot({ path: `${shots}/twice-question.png` });
  await page.keyboard.press("Escape");
});
