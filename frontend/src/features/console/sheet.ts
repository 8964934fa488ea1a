/** A style element of xterm.js whose text becomes a constructed style sheet: the pages' policy refuses style
 * elements and lets scripts style (../../../xterm-policy.ts). */
export function defineSheet(): void {
  if (customElements.get("sallyport-sheet")) return;
  customElements.define(
    "sallyport-sheet",
    class extends HTMLElement {
      readonly #sheet = new CSSStyleSheet();

      override get textContent(): string {
        return [...this.#sheet.cssRules].map((rule) => rule.cssText).join("\n");
      }

      override set textContent(text: string | null) {
        this.#sheet.replaceSync(text ?? "");
      }

      connectedCallback(): void {
        this.hidden = true;
        document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
      }

      disconnectedCallback(): void {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== this.#sheet);
      }
    },
  );
}
