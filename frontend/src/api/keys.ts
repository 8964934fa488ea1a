/** The names under which answers are kept. An event makes all that begin with one stale. */
export const keys = {
  status: ["status"],
  plugins: ["plugins"],
  decisions: ["decisions"],
  tools: ["tools"],
  clients: ["clients"],
  secrets: ["secrets"],
  keyring: ["keyring"],
  policy: ["policy"],
  settings: ["settings"],
  autostart: ["autostart"],
  updates: ["updates"],
  consoles: ["consoles"],
  audit: ["audit"],
  installations: ["installations"],
} as const satisfies Record<string, readonly string[]>;
