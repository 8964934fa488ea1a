import { svelte } from "@sveltejs/vite-plugin-svelte";
import { svelteTesting } from "@testing-library/svelte/vite";
import { defineConfig } from "vitest/config";
import { xtermPolicy } from "./xterm-policy";

// In development the pages come from Vite and the API from a sidecar that runs:
//   SALLYPORT_URL=http://127.0.0.1:PORT npm run dev
const sidecar = process.env.SALLYPORT_URL ?? "http://127.0.0.1:7420";

export default defineConfig({
  plugins: [xtermPolicy(), svelte(), svelteTesting()],
  base: "./",
  build: {
    outDir: "dist",
    // .gitkeep stays: Go embeds the folder also where nothing was built.
    emptyOutDir: false,
    target: "es2022",
    // A style or script in the page itself is what the CSP refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // How long plugins of the build take is nobody's business who types make run.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: {
    cors: false,
    // The sidecar refuses every Origin but its own; this is the one place that speaks for another.
    proxy: { "/v1": { target: sidecar, changeOrigin: true, headers: { origin: sidecar } } },
  },
  test: {
    environment: "jsdom",
    testTimeout: 60_000,
    include: ["src/**/*.test.ts"],
    setupFiles: ["src/test/setup.ts"],
  },
});
