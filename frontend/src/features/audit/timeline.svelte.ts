import type { Schemas } from "../../api/client";

type Record = Schemas["AuditRecord"];
export type Page = { records: Record[]; next?: string };
/** Asks for a page; a cursor says where to go on. */
export type Ask = (cursor: string | undefined, stop: AbortSignal) => Promise<Page>;

/** The records of one filter, page after page. Pages are never asked for again: records do not change. One request
 * at a time, and none after it is ended. */
export class Timeline {
  records = $state.raw<readonly Record[]>([]);
  busy = $state(false);
  error = $state.raw<unknown>();
  complete = $state(false);
  #cursor: string | undefined;
  readonly #stop = new AbortController();
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  async more(): Promise<void> {
    if (this.busy || this.complete || this.#stop.signal.aborted) {
      return;
    }
    this.busy = true;
    this.error = undefined;
    try {
      const page = await this.#ask(this.#cursor, this.#stop.signal);
      if (!this.#stop.signal.aborted) {
        this.records = [...this.records, ...page.records];
        this.#cursor = page.next;
        this.complete = !page.next;
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        this.error = error;
      }
    } finally {
      this.busy = false;
    }
  }

  end(): void {
    this.#stop.abort();
  }
}
