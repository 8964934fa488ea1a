// A plugin every string of which tries something. Wherever it is shown it is text: no element of its making, no
// character that hides, nothing wider than the window, nothing slow.
import { expect, heard, story, tell } from "./browser.mjs";

await story("hostile", async ({ page, origin, see }) => {
  const id = "hostile/main";
  const plugin = `${origin}/#/plugins/hostile/main`;

  /** What no text of a plugin's may have become, on the page that is open now. */
  async function harmless(where) {
    const found = await page.evaluate(() => {
      const problems = [];
      if (window.__hit !== undefined) problems.push("its script ran");
      for (const node of document.querySelectorAll("img, iframe, object, embed, script:not([type=module])"))
        problems.push(`an element: ${node.outerHTML.slice(0, 120)}`);
      for (const node of document.querySelectorAll("[href], [src]")) {
        const to = node.getAttribute("href") ?? node.getAttribute("src");
        if (/^\s*(javascript|data|vbscript):/i.test(to)) problems.push(`an address: ${to.slice(0, 80)}`);
      }
      for (const node of document.querySelectorAll("[onerror], [onclick]"))
        problems.push(`a handler on ${node.tagName}`);
      const hidden =
        /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/u;
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const { data, parentElement } = walker.currentNode;
        const at = data.search(hidden);
        if (at >= 0)
          problems.push(
            `U+${data.codePointAt(at).toString(16)} hides in <${parentElement.tagName}>: ${JSON.stringify(data.slice(0, 60))}`,
          );
      }
      for (const node of document.querySelectorAll("[aria-label], [title], option[label]"))
        for (const name of ["aria-label", "title", "label"])
          if (hidden.test(node.getAttribute(name) ?? ""))
            problems.push(`${name} of ${node.tagName} hides something`);
      if (document.body.innerText.length > 400_000)
        problems.push(`${document.body.innerText.length} characters are on the page`);
      return problems;
    });
    expect(found.length === 0, `${where}:\n${found.join("\n")}`);
  }

  async function look(name) {
    await page.waitForFunction(
      () => ![...document.querySelectorAll("[role=status]")].some((n) => /…$/.test(n.textContent)),
    );
    await harmless(name);
    await see(`hostile-${name}`);
  }

  async function tabs(prefix) {
    const names = await page.getByRole("tab").allInnerTexts();
    for (const name of names) {
      await page.getByRole("tab", { name, exact: true }).click();
      await look(`${prefix}-${name.trim().toLowerCase().split(/\s/)[0]}`);
    }
    return names.length;
  }

  await page.getByRole("heading", { name: "Home" }).waitFor();
  await look("home");
  await page.goto(`${origin}/#/plugins`);
  await page
    .getByRole("link", { name: /hostile/ })
    .first()
    .waitFor();
  await look("plugins");
  await page.goto(plugin);
  await page.getByRole("heading", { name: id }).waitFor();
  await tabs("new");
  await page.goto(plugin);
  await page.getByRole("button", { name: "Review…" }).click();
  await page.getByText(/wants to run a program on this computer/).waitFor();
  await look("review-run");
  await page.getByRole("button", { name: "Allow to run…" }).click();
  await page.getByText(/Which of its \d+ tools may agents call/).waitFor();
  await look("review-tools");
  await page.getByRole("checkbox", { name: "say", exact: true }).check();
  await page.getByRole("button", { name: "Enable 1 tool" }).click();
  await page.getByText("enabled", { exact: true }).first().waitFor();

  tell("approved");
  await heard();
  await page.goto(`${origin}/#/review`);
  await page.getByRole("link", { name: /say/ }).first().click();
  await page.getByRole("button", { name: "Allow this call" }).waitFor();
  await look("review-call");
  await page.getByRole("button", { name: "Allow this call" }).click();
  tell("answered");
  await heard();
  await page.goto(plugin);
  await page.getByRole("heading", { name: id }).waitFor();
  await tabs("enabled");
  await page.goto(`${origin}/#/audit`);
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  await look("audit");

  tell("change");
  await heard();
  await page.goto(plugin);
  await page.getByRole("button", { name: "Review…" }).click();
  await page
    .getByText(/changed since you approved it|→/)
    .first()
    .waitFor();
  await look("review-changed");
});
