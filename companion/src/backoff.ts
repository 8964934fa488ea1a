/** How often and how soon a sidecar that ended is started again. */
export interface Restart {
  /** So many in a row are tried, then it is given up. */
  readonly attempts: number;
  /** Before the first, in milliseconds; each further one waits twice as long. */
  readonly firstDelay: number;
  readonly longestDelay: number;
  /** One that was ready for so long counts as well: the next end is a first one again. */
  readonly steadyAfter: number;
}

export const usualRestart: Restart = {
  attempts: 5,
  firstDelay: 500,
  longestDelay: 30_000,
  steadyAfter: 60_000,
};

/** The pause before an attempt, 1 being the first: from half of it to the whole, so that many do not come at once. */
export function delayBefore(attempt: number, restart: Restart, random: () => number = Math.random): number {
  const whole = Math.min(restart.longestDelay, restart.firstDelay * 2 ** (attempt - 1));
  return Math.round(whole * (0.5 + random() / 2));
}
