import type { Schemas } from "../../api/client";

/** What went on in one day, by this computer's calendar. */
export type Day = { start: Date; calls: number; refused: number; failed: number };

/** The beginnings of the last days, oldest first, today's last. By the calendar: a day may have 23 hours. */
function starts(now: Date, days: number): Date[] {
  return Array.from(
    { length: days },
    (_, at) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - (days - 1 - at)),
  );
}

/** Since when hours are needed for that many days, as the API takes it. */
export const since = (now: Date, days = 7): string =>
  starts(now, days)[0]!
    .toISOString()
    .replace(/\.\d+Z$/, "Z");

/** Adds hours up to days. A zone that is off by half an hour puts its first half hour into the day before. */
export function byDay(hours: readonly Schemas["AuditHour"][], now: Date, days = 7): Day[] {
  const out: Day[] = starts(now, days).map((start) => ({ start, calls: 0, refused: 0, failed: 0 }));
  for (const hour of hours) {
    const at = new Date(hour.at);
    const day = out.filter((d) => d.start <= at).at(-1);
    if (day) {
      day.calls += hour.calls;
      day.refused += hour.refused;
      day.failed += hour.failed;
    }
  }
  return out;
}

export const total = (days: readonly Day[], what: "calls" | "refused" | "failed"): number =>
  days.reduce((sum, day) => sum + day[what], 0);

/** How high a bar is: what is not nothing is seen. */
export const height = (value: number, most: number, full: number): number =>
  value === 0 || most === 0 ? 0 : Math.max(2, Math.round((value / most) * full));
