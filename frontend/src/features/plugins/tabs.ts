import { to } from "../../router.svelte";
import type { Subject } from "./questions";

/** The parts of a connector's page. The first is shown where an address names none. */
export const tabs = [
  "overview",
  "launch",
  "tools",
  "files",
  "skills",
  "permissions",
  "activity",
  "logs",
] as const;
export type Tab = (typeof tabs)[number];

const isTab = (word: string | undefined): word is Tab => (tabs as readonly string[]).includes(word ?? "");

/** Reads #/plugins/PLUGIN/SERVER/TAB. A name's own slashes are escaped in an address; one that somebody typed
 * without that is taken for part of the server's name, as long as it is no tab. */
export function place(parts: readonly string[]): { subject: Subject; tab: Tab } | undefined {
  const [, plugin, ...rest] = parts;
  if (!plugin || rest.length === 0) return undefined;
  const last = rest.at(-1);
  const tab: Tab = rest.length > 1 && isTab(last) ? last : "overview";
  const server = rest.length > 1 && isTab(last) ? rest.slice(0, -1) : rest;
  return { subject: { plugin, server: server.join("/") }, tab };
}

/** The address of a tab; the first one's is the page's own. */
export function address({ plugin, server }: Subject, tab: Tab = "overview"): string {
  return to("plugins", plugin, server, ...(tab === "overview" ? [] : [tab]));
}
