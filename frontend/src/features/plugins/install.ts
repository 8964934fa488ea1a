/** Where a plugin can be installed from, and how that is said to the sidecar, which reads it itself: a page hands
 * over no file. */
export const kinds = ["folder", "archive", "npm", "git"] as const;
export type Kind = (typeof kinds)[number];
export type Place = { kind: Kind; where: string; exact: string };

/** The source as the API takes it; undefined while something is missing. */
export function source({ kind, where, exact }: Place): string | undefined {
  const place = where.trim();
  const version = exact.trim();
  if (place === "") return undefined;
  switch (kind) {
    case "folder":
    case "archive":
      return place;
    case "npm":
      return version === "" ? undefined : `npm:${place}@${version}`;
    case "git":
      return version === "" ? undefined : `${place}#${version}`;
  }
}

/** Where something came from, as the form has it: for whoever wants it back. */
export function asPlace(text: string): Place {
  const npm = /^npm:(.+)@([^@]+)$/.exec(text);
  if (npm) return { kind: "npm", where: npm[1]!, exact: npm[2]! };
  const git = /^(.+)#([0-9a-f]{40,64})$/.exec(text);
  if (git) return { kind: "git", where: git[1]!, exact: git[2]! };
  const kind = /\.(mcpb|dxt|zip|tar\.gz|tgz)$/i.test(text) ? "archive" : "folder";
  return { kind, where: text, exact: "" };
}

/** What somebody wrote for an update: another source, a version of the same package, or nothing. */
export function update(written: string): { source?: string; version?: string } {
  const word = written.trim();
  if (word === "") return {};
  return /[\\/:]/.test(word) ? { source: word } : { version: word };
}

/** Commands that fetch an npm package at every start. Whether it can be done says the sidecar. */
export const fetchesPackage = (command: string | undefined): boolean =>
  /(^|[\\/])(npx|npm|pnpm|pnpx|bunx|yarn)(\.cmd|\.exe)?$/i.test(command ?? "");
