/** Whether a choice has less kept than now, which is asked about. */
export function less(
  chosen: { days: number; records: number },
  now: { days: number; records: number },
): boolean {
  return chosen.days < now.days || chosen.records < now.records;
}
