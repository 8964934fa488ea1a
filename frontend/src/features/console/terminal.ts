import { FitAddon } from "@xterm/addon-fit";
import { Terminal, type ITheme } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { defineSheet } from "./sheet";

const scrollback = 10_000;

/** The colours of the pages, and a palette that is read on them. */
function theme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(name).trim();
  return {
    background: token("--surface"),
    foreground: token("--ink"),
    cursor: token("--accent"),
    cursorAccent: token("--surface"),
    selectionBackground: token("--terminal-selection"),
    scrollbarSliderBackground: token("--border"),
    scrollbarSliderHoverBackground: token("--border-strong"),
    scrollbarSliderActiveBackground: token("--border-strong"),
    black: token("--terminal-black"),
    red: token("--terminal-red"),
    green: token("--terminal-green"),
    yellow: token("--terminal-yellow"),
    blue: token("--terminal-blue"),
    magenta: token("--terminal-magenta"),
    cyan: token("--terminal-cyan"),
    white: token("--terminal-white"),
    brightBlack: token("--terminal-white"),
    brightRed: token("--terminal-red"),
    brightGreen: token("--terminal-green"),
    brightYellow: token("--terminal-yellow"),
    brightBlue: token("--terminal-blue"),
    brightMagenta: token("--terminal-magenta"),
    brightCyan: token("--terminal-cyan"),
    brightWhite: token("--ink"),
  };
}

export type Screen = {
  readonly cols: number;
  readonly rows: number;
  show: (bytes: Uint8Array) => Promise<void>;
  say: (line: string) => void;
  focus: () => void;
  reader: (on: boolean) => void;
  close: () => void;
};

/** Draws a terminal in an element, as large as it is, until it is closed. */
export function openScreen(
  into: HTMLElement,
  on: {
    label: string;
    typed: (bytes: Uint8Array) => void;
    resized: (cols: number, rows: number) => void;
    leave: () => void;
  },
): Screen {
  defineSheet();
  const style = getComputedStyle(document.documentElement);
  const terminal = new Terminal({
    scrollback,
    fontFamily: style.getPropertyValue("--mono").trim(),
    fontSize: Math.round(0.8125 * parseFloat(style.fontSize)),
    theme: theme(),
    minimumContrastRatio: 4.5,
    // A program's link is text: nothing that it prints opens anything.
    linkHandler: { activate: () => {} },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(into);
  terminal.textarea?.setAttribute("aria-label", on.label);
  const encoder = new TextEncoder();
  terminal.onData((text) => on.typed(encoder.encode(text)));
  terminal.onBinary((text) => on.typed(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  terminal.onResize(({ cols, rows }) => on.resized(cols, rows));
  terminal.attachCustomKeyEventHandler((event) => keyed(event, terminal, on.leave));
  const watch = new ResizeObserver(() => into.isConnected && fit.fit());
  watch.observe(into);
  fit.fit();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => (terminal.options.theme = theme());
  dark.addEventListener("change", recolour);
  return {
    get cols() {
      return terminal.cols;
    },
    get rows() {
      return terminal.rows;
    },
    show: (bytes) => new Promise((done) => terminal.write(bytes, done)),
    say: (line) => terminal.write(`\r\n\x1b[0m\x1b[2m${line}\x1b[0m\r\n`),
    focus: () => terminal.focus(),
    reader: (mode) => (terminal.options.screenReaderMode = mode),
    close: () => {
      watch.disconnect();
      dark.removeEventListener("change", recolour);
      terminal.dispose();
    },
  };
}

/** The keys that are not the program's: copying and pasting as terminals do it, and the way out for the keyboard. */
function keyed(event: KeyboardEvent, terminal: Terminal, leave: () => void): boolean {
  if (event.type !== "keydown") return true;
  const copies =
    (event.ctrlKey && event.shiftKey && event.code === "KeyC") || (event.ctrlKey && event.key === "Insert");
  if (copies) {
    event.preventDefault();
    if (terminal.hasSelection()) void navigator.clipboard.writeText(terminal.getSelection()).catch(() => {});
    return false;
  }
  // The browser pastes by itself, into the field that takes the keys.
  if (event.ctrlKey && event.shiftKey && event.code === "KeyV") return false;
  if (event.shiftKey && event.key === "Insert") return false;
  if (event.shiftKey && event.key === "Escape") {
    event.preventDefault();
    leave();
    return false;
  }
  return true;
}
