import type { Schemas } from "../../api/client";
import { text } from "../../text";
import { way } from "../audit/said";

/** What a line of a question's journal says, in words; what this page does not know by its own name as it is. */
export function told({ event, detail }: Pick<Schemas["ApprovalsJournalEntry"], "event" | "detail">): string {
  const events: Readonly<Record<string, string>> = text.review.events;
  const said = events[event];
  if (said === undefined) {
    return [event, detail].filter(Boolean).join(" ");
  }
  if (event === "asked") {
    const what = /^(?:(run|tools) [a-z]+|bundle ([a-z]+))$/.exec(detail)?.slice(1).find(Boolean);
    const asks: Readonly<Record<string, string>> = text.review.askedOf;
    return [said, what ? asks[what] : (asks[detail] ?? detail)].filter(Boolean).join(" ");
  }
  // Another question's name says nothing to a person.
  return event === "superseded" || detail === "" ? said : `${said}: ${detail}`;
}

/** Who it was: a journal has the name and the way in one. */
export function teller(by: string): string {
  const [, user, via] = /^(.+) via ([a-z]+)$/.exec(by) ?? [];
  if (user === undefined || via === undefined) return by;
  return user === via ? text.app.name : `${user} (${way(via)})`;
}
