/** Lengths of time that are offered, in minutes; 0 is never. */
export const questionChoices = [5, 10, 30, 60, 240, 480, 1440] as const;
export const idleChoices = [5, 15, 30, 60, 240, 1440, 0] as const;

/** What is offered, with what holds now in its place: somebody may have typed another one. */
export function choices(offered: readonly number[], now: number): number[] {
  if (offered.includes(now)) return [...offered];
  const end = (n: number): number => (n === 0 ? Infinity : n);
  return [...offered, now].sort((a, b) => end(a) - end(b));
}
