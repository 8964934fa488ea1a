import type { Schemas } from "../../api/client";
import { text } from "../../text";

type Record = Schemas["AuditRecord"];

/** The action of a record in words; one that this page does not know by its own name. */
export function action(name: string): string {
  const words: { readonly [name: string]: string } = text.audit.actions;
  return words[name] ?? name;
}

/** What a record is about: the connector and what of it, or the setting, the secret, the agent. */
export function about(record: Record): string {
  const connector = [record.plugin, record.binding].filter(Boolean).join("/");
  const what = [connector, record.target].filter(Boolean).join(" · ");
  return what || record.client;
}

/** Who did it: the agent, where it called something, and else the person or Sallyport. */
export function who(record: Record): string {
  const agent = record.client !== "" && about(record) !== record.client;
  return `${agent ? record.client : record.actor} (${record.via})`;
}
