import { text } from "./index";

/** How long ago, in words; a date beyond a day. A time in the future is now (a clock was set back). */
export function ago(at: string, now: number = Date.now()): string {
  const minutes = Math.floor((now - Date.parse(at)) / 60_000);
  if (minutes < 1) return text.time.now;
  if (minutes < 60) return text.time.minutes(minutes);
  if (minutes < 24 * 60) return text.time.hours(Math.floor(minutes / 60));
  return new Date(at).toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** What is left until a time, such as "9 min"; empty once it is over. */
export function left(until: string, now: number = Date.now()): string {
  const seconds = Math.ceil((Date.parse(until) - now) / 1000);
  if (seconds <= 0) return "";
  return seconds < 90 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
