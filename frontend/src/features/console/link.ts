import { Refusal } from "../../api/client";

/** What a console says and hears, by offsets from its beginning. */
export type Printed = {
  data: string;
  next: number;
  dropped: number;
  ended: boolean;
  console: { printed: number };
};

export type Wire<P extends Printed> = {
  output: (after: number) => Promise<P>;
  input: (data: string) => Promise<unknown>;
  size: (cols: number, rows: number) => Promise<unknown>;
};

export type Listener<P extends Printed> = {
  /** Draws, and comes back when that is done: no more is asked for before. */
  show: (bytes: Uint8Array) => Promise<void>;
  dropped: (bytes: number) => void;
  ended: (last: P) => void;
  failed: (error: unknown) => void;
  lost: (lost: boolean) => void;
};

const most = 32 * 1024;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** One end of a console: reads by a long poll until it has ended, and types in order, one request at a time. */
export class Link<P extends Printed> {
  readonly #wire: Wire<P>;
  readonly #on: Listener<P>;
  #typed: Uint8Array[] = [];
  #sending = false;
  #over = false;
  /** Up to where what is shown had been printed, and answered, before this end was there. */
  #replayed = 0;
  #after = 0;

  constructor(wire: Wire<P>, on: Listener<P>) {
    this.#wire = wire;
    this.#on = on;
  }

  /** Reads until the end, or until it is stopped. What a console that was open already has printed may ask the
   * terminal things; somebody has answered, and another answer would be typed into whatever reads now. */
  async follow(stop: AbortSignal, opened: "now" | "before"): Promise<void> {
    this.#replayed = opened === "now" ? 0 : Infinity;
    let patience = 500;
    while (!stop.aborted) {
      let got: P;
      try {
        got = await this.#wire.output(this.#after);
      } catch (error) {
        if (stop.aborted) return;
        if (error instanceof Refusal) {
          this.#over = true;
          this.#on.failed(error);
          return;
        }
        this.#on.lost(true);
        await new Promise((resolve) => setTimeout(resolve, patience));
        patience = Math.min(patience * 2, 8000);
        continue;
      }
      if (stop.aborted) return;
      patience = 500;
      this.#on.lost(false);
      if (this.#replayed === Infinity) this.#replayed = got.console.printed;
      if (got.dropped > 0) this.#on.dropped(got.dropped);
      if (got.data !== "") await this.#on.show(fromBase64(got.data));
      this.#after = got.next;
      if (got.ended) {
        this.#over = true;
        this.#on.ended(got);
        return;
      }
    }
  }

  type(bytes: Uint8Array): void {
    if (this.#over || this.#after < this.#replayed || bytes.length === 0) return;
    this.#typed.push(bytes);
    if (!this.#sending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#sending = true;
    try {
      while (this.#typed.length > 0 && !this.#over) {
        await this.#wire.input(toBase64(this.#take()));
      }
    } catch (error) {
      this.#typed = [];
      if (!this.#over) this.#on.failed(error);
    } finally {
      this.#sending = false;
    }
  }

  /** What goes with the next request: as much of what waits as one takes. */
  #take(): Uint8Array {
    let length = 0;
    const parts: Uint8Array[] = [];
    while (this.#typed.length > 0 && length < most) {
      const first = this.#typed.shift()!;
      const fits = first.subarray(0, most - length);
      if (fits.length < first.length) this.#typed.unshift(first.subarray(fits.length));
      parts.push(fits);
      length += fits.length;
    }
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}
