/** How a person likes differences to be shown; kept in this browser or window, and nothing hangs on it. */
const name = "sallyport-difference";

function kept(): boolean {
  try {
    return localStorage.getItem(name) === "split";
  } catch {
    return false; // storage may be off
  }
}

class Layout {
  split = $state(kept());

  choose(split: boolean): void {
    this.split = split;
    try {
      localStorage.setItem(name, split ? "split" : "unified");
    } catch {
      // It holds until the page is closed.
    }
  }
}

export const layout = new Layout();
