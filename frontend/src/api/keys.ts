/** The names under which answers are kept. An event makes all that begin with one stale. */
export const keys = {
  status: ["status"],
  plugins: ["plugins"],
  decisions: ["decisions"],
  tools: ["tools"],
  clients: ["clients"],
  secrets: ["secrets"],
  policy: ["policy"],
  audit: ["audit"],
  installations: ["installations"],
} as const satisfies Record<string, readonly string[]>;
