import type { Schemas } from "../../api/client";
import { text } from "../../text";

/** One thing that a connector may do or not, in words, and whether somebody sees to it that it is so. Names are the
 * package's text. */
export type Line = { key: string; title: string; words: string; names: string[]; enforced: boolean };

type Detail = Pick<Schemas["ConnectorDetail"], "mayTouch" | "transport">;

/** What a connector may touch. Sallyport sees to what goes through it; what a process of its own does on this
 * computer is not kept from it. */
export function lines({ mayTouch, transport }: Detail): Line[] {
  const words = text.plugins.permissions;
  const process = transport === "stdio";
  const any = mayTouch.tools.length === 1 && mayTouch.tools[0] === "*";
  const out: Line[] = [
    {
      key: "tools",
      title: words.tools,
      words: mayTouch.tools.length === 0 ? words.noTools : any ? words.anyTool : words.theseTools,
      names: any ? [] : mayTouch.tools,
      enforced: true,
    },
    {
      key: "secrets",
      title: words.secrets,
      words: mayTouch.secrets.length === 0 ? words.noSecrets : words.theseSecrets,
      names: mayTouch.secrets,
      enforced: true,
    },
    {
      key: "net",
      title: words.net,
      words: mayTouch.net.length === 0 ? words.noHosts : words.theseHosts,
      names: mayTouch.net,
      enforced: true,
    },
  ];
  if (!process) return out;
  const folders: Record<string, string> = words.folders;
  return [
    ...out,
    { key: "process-net", title: words.processNet, words: words.anyHost, names: [], enforced: false },
    {
      key: "files",
      title: words.files,
      words: mayTouch.fs.length === 0 ? words.noFiles : words.theseFiles,
      names: mayTouch.fs.map((word) => folders[word] ?? word),
      enforced: false,
    },
    { key: "environment", title: words.environment, words: words.onlyNamed, names: [], enforced: true },
  ];
}

/** Whether a rule or answer is about this connector alone. */
export const isAbout = (id: string, about: string): boolean => about === id || about.startsWith(`${id}:`);
