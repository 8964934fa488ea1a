import type { Component } from "svelte";
import Home from "./features/home/Home.svelte";
import NotFound from "./NotFound.svelte";

/** The pages by the first part of their address. Heavy ones are loaded when they are opened. */
type Load = () => Promise<{ default: Component }>;
type Entry = { page: Component } | { load: Load };

export const pages: Record<string, Entry> = {
  "": { page: Home },
  plugins: { load: () => import("./features/plugins/Plugins.svelte") },
  secrets: { load: () => import("./features/secrets/Secrets.svelte") },
  settings: { load: () => import("./features/settings/Settings.svelte") },
  clients: { load: () => import("./features/clients/Clients.svelte") },
  audit: { load: () => import("./features/audit/Audit.svelte") },
  console: { load: () => import("./features/console/Console.svelte") },
  review: { load: () => import("./features/review/Review.svelte") },
};

export const notFound: Component = NotFound;
