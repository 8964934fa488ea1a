/** Gives the keyboard to a part of the page that opens, and back to where it was when that part closes; to the
 * page's beginning where that is gone. For an effect: it returns what undoes it. */
export function lendFocus(to: HTMLElement | null | undefined): () => void {
  const before = document.activeElement;
  to?.focus();
  return () =>
    queueMicrotask(() => {
      if (document.activeElement !== null && document.activeElement !== document.body) return;
      const back =
        before instanceof HTMLElement && before.isConnected ? before : document.getElementById("main");
      back?.focus();
    });
}
