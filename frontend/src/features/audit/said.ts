import type { Schemas } from "../../api/client";
import { text } from "../../text";

type Record = Schemas["AuditRecord"];

/** What was done, in words; an action that this page does not know by its own name. */
export function action(record: Pick<Record, "action" | "reason">): string {
  const words: { readonly [name: string]: string } = text.audit.actions;
  if (record.action === "connect" && record.reason === "undo") {
    return text.audit.disconnected;
  }
  return words[record.action] ?? record.action;
}

/** Whether the agent is what the record is about, and not who did it. */
const aboutAgent = (record: Record): boolean => record.action.startsWith("client.");

/** Which of its things a record is about. That of a question is which question it was. */
export function target(record: Pick<Record, "action" | "target">): string {
  const words: { readonly [name: string]: string } = text.audit.targets;
  const ofQuestion = [
    "ask",
    "allow",
    "deny",
    "expire",
    "start",
    "enable",
    "install",
    "update",
    "uninstall",
  ].includes(record.action);
  return (ofQuestion ? words[record.target] : undefined) ?? record.target;
}

/** What a record is about: the connector and what of it, or the setting, the secret, the agent. */
export function about(record: Record): string {
  const agent = aboutAgent(record) ? record.client : "";
  const connector = [record.plugin, record.binding].filter(Boolean).join("/");
  return [agent, connector, target(record)].filter(Boolean).join(" · ") || record.client;
}

/** By which way something was said or asked, in words. */
export function way(via: string): string {
  const words: { readonly [name: string]: string } = text.audit.vias;
  return words[via] ?? via;
}

/** Who did it: the agent, where it came by its own connection, and else the person or Sallyport. */
export function who(record: Record): string {
  if (record.client !== "" && (record.via === "mcp" || record.via === "agent")) {
    return record.client;
  }
  return record.actor === record.via ? text.app.name : `${record.actor} (${way(record.via)})`;
}

/** How it came out, in words. */
export function outcome(result: string): string {
  const words: { readonly [name: string]: string } = text.audit.results;
  return words[result] ?? result;
}
