import "@testing-library/jest-dom/vitest";
import { configure } from "@testing-library/svelte";

// What is waited for comes late on a busy machine.
configure({ asyncUtilTimeout: 20_000 });

// jsdom lays nothing out, so nothing ever changes its size.
globalThis.ResizeObserver ??= class {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
};
