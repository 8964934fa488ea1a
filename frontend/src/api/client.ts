import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "@sallyport/api";
import { ask, toText } from "./fetch";
import { proof } from "./session";

export type Schemas = components["schemas"];

/** Refusal is what the API says instead of doing something: a stable code, a sentence and what to do next. */
export class Refusal extends Error {
  readonly code: string;
  readonly next: string | undefined;
  readonly status: number;

  constructor(status: number, body: { code?: string; message?: string; details?: { next?: string } }) {
    super(body.message ?? "the answer cannot be read");
    this.name = "Refusal";
    this.status = status;
    this.code = body.code ?? "unreadable";
    this.next = body.details?.next;
  }
}

const proves: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(proof())) {
      request.headers.set(name, value);
    }
    return request;
  },
};

export const api = createClient<paths>({
  baseUrl: location.origin,
  credentials: "same-origin",
  fetch: ask,
  bodySerializer: toText,
});
api.use(proves);

type Answered<T> = { data?: T; error?: unknown; response: Response };

/** The JSON of an answer that may also be a stream. */
type JSONOf<T> = Exclude<T, string>;

/** Waits for an answer and throws the refusal, so that a query or mutation has it. */
export async function answer<T>(request: Promise<Answered<T>>): Promise<JSONOf<T>> {
  const { data, error, response } = await request;
  if (error !== undefined || !response.ok) {
    throw new Refusal(response.status, (error ?? {}) as ConstructorParameters<typeof Refusal>[1]);
  }
  return data as JSONOf<T>;
}
