/** Tools by how much care they take, the most dangerous first. One whose class nobody confirmed is unknown. */
export function grouped<T extends { class: string }>(tools: readonly T[]): { name: string; tools: T[] }[] {
  const order = ["destructive", "unknown", "write", "read"];
  const known = (name: string): string => (order.includes(name) ? name : "unknown");
  return order
    .map((name) => ({ name, tools: tools.filter((t) => known(t.class) === name) }))
    .filter((group) => group.tools.length > 0);
}
