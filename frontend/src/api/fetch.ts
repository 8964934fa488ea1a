/** The one place from which anything is asked.
 *
 * WebKitGTK ends the whole program when a page of the window sends a Blob or a File, alone or in a form
 * (docs/decisions/0030). So no body is anything but text here; a file is read first. */
export function ask(asked: Request | string, init?: RequestInit): Promise<Response> {
  const body = init?.body;
  if (body !== undefined && body !== null && typeof body !== "string") {
    throw new TypeError("only text is sent: read a file first");
  }
  return fetch(asked, init);
}

/** Writes what a request sends, and refuses what has no place in JSON. */
export function toText(body: unknown): string {
  return JSON.stringify(body, (_, value: unknown) => {
    if (
      value instanceof Blob ||
      value instanceof FormData ||
      value instanceof ArrayBuffer ||
      ArrayBuffer.isView(value) ||
      value instanceof ReadableStream
    ) {
      throw new TypeError("only text is sent: read a file first");
    }
    return value;
  });
}
