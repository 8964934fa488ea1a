import type { Plugin } from "vite";

/** What xterm.js does that the pages' policy (style-src 'self') refuses, and what takes its place: both are the
 * same style, set by scripts, which the policy lets them. Another version that does it in another way ends the build. */
const replaced: { from: string; to: string; times: number }[] = [
  // A style element: its text goes into a constructed style sheet (src/features/console/sheet.ts).
  { from: 'createElement("style")', to: 'createElement("sallyport-sheet")', times: 3 },
  // A style attribute, of colours beyond the palette. The parenthesis is closed where the call's was.
  { from: '.setAttribute("style",', to: ".style.cssText=(", times: 1 },
];

export function xtermPolicy(): Plugin {
  return {
    name: "xterm-policy",
    enforce: "pre",
    transform(code, id) {
      if (!/@xterm\/xterm\/lib\/xterm\.(m?js)(\?|$)/.test(id)) return null;
      for (const { from, to, times } of replaced) {
        const parts = code.split(from);
        if (parts.length !== times + 1) {
          throw new Error(`xterm.js has ${from} ${parts.length - 1} times and not ${times}: look at it anew`);
        }
        code = parts.join(to);
      }
      return { code, map: null };
    },
  };
}
