import { api, Refusal } from "../../../api/client";
import { parse, member, type Node } from "../../../text/json";

/** One call of the operator's own: it goes through the same gate as an agent's. */
export type Tried = {
  state: "calling" | "answered" | "refused" | "cancelled";
  call: string;
  since: number;
  ms?: number;
  result?: Node;
  error?: unknown;
};

type Subject = { plugin: string; server: string };

const keyOf = (subject: Subject, tool: string): string =>
  JSON.stringify([subject.plugin, subject.server, tool]);

/** The newest call of each tool, for as long as the page is open: whoever goes to answer the question about it
 * finds its result on coming back. */
class Running {
  #all = $state<Record<string, Tried>>({});

  of(subject: Subject, tool: string): Tried | undefined {
    return this.#all[keyOf(subject, tool)];
  }

  /** args is the text of a JSON object and is sent as it is. */
  async start(subject: Subject, tool: string, args: string): Promise<void> {
    const key = keyOf(subject, tool);
    const call = `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
    const since = Date.now();
    this.#all[key] = { state: "calling", call, since };
    const end = (how: Partial<Tried>): void => {
      const now = this.#all[key];
      if (now?.call === call && now.state === "calling") {
        this.#all[key] = { ...now, ms: Date.now() - since, ...how };
      }
    };
    try {
      end({ state: "answered", result: await send(subject, tool, args, call) });
    } catch (error) {
      end({ state: "refused", error });
    }
  }

  /** Gives the call up here and in the sidecar: a window does not notice by itself that a page did. */
  async cancel(subject: Subject, tool: string): Promise<void> {
    const key = keyOf(subject, tool);
    const now = this.#all[key];
    if (now?.state !== "calling") return;
    this.#all[key] = { ...now, state: "cancelled", ms: Date.now() - now.since };
    await api
      .POST("/v1/plugins/{plugin}/{server}/call/cancel", {
        params: { path: subject },
        body: { call: now.call },
      })
      .catch(() => undefined); // it ends by its own time then
  }

  forget(subject: Subject, tool: string): void {
    delete this.#all[keyOf(subject, tool)];
  }
}

export const running = new Running();

/** The body is built here and the answer read here, so that no number of either is decoded and encoded again. */
async function send(subject: Subject, tool: string, args: string, call: string): Promise<Node> {
  const { data, error, response } = await api.POST("/v1/plugins/{plugin}/{server}/call", {
    params: { path: subject },
    body: { tool, args: {}, call },
    bodySerializer: () => bodyOf(tool, args, call),
    parseAs: "text",
  });
  if (error !== undefined || !response.ok) {
    throw new Refusal(response.status, (error ?? {}) as ConstructorParameters<typeof Refusal>[1]);
  }
  const result = member(parse(data as string), "result");
  if (result === undefined) {
    throw new Refusal(response.status, { code: "unreadable" });
  }
  return result;
}

export function bodyOf(tool: string, args: string, call: string): string {
  return `{"tool":${JSON.stringify(tool)},"args":${args},"call":${JSON.stringify(call)}}`;
}
