import type { QueryClient } from "@tanstack/svelte-query";
import { answer, api, Refusal } from "./client";
import { keys } from "./keys";

/** Which questions to ask again after an event. Events say that something changed, never what. */
const concerns: Record<string, readonly (readonly string[])[]> = {
  decision: [keys.decisions, keys.plugins, keys.status],
  connector: [keys.plugins, keys.tools, keys.status],
  plugins: [keys.plugins, keys.tools, keys.decisions, keys.status],
  tools: [keys.plugins, keys.tools],
  clients: [keys.clients],
  session: [keys.clients],
  health: [keys.status, keys.keyring],
  secrets: [keys.secrets, keys.keyring, keys.plugins],
  settings: [keys.policy, keys.settings, keys.consoles],
  console: [keys.consoles],
  installation: [keys.installations],
};

/** Follows what changes by a long poll until stopped. One poll at a time: a poll that is given up lives on at
 * the other side of a webview. */
export function followEvents(client: QueryClient, stop: AbortSignal, onLost: (lost: boolean) => void): void {
  void follow(client, stop, onLost);
}

async function follow(
  client: QueryClient,
  stop: AbortSignal,
  onLost: (lost: boolean) => void,
): Promise<void> {
  let after: number | undefined;
  let patience = 500;
  while (!stop.aborted) {
    try {
      const page = await answer(
        api.GET("/v1/events", {
          params: { query: { after: after?.toString(), wait: after === undefined ? "0s" : "20s" } },
        }),
      );
      onLost(false);
      patience = 500;
      if (!page.complete || after === undefined) {
        await client.invalidateQueries();
      }
      // Each question once, however much happened: a thousand plugins come with a thousand events.
      for (const key of new Set(page.events.flatMap((event) => concerns[event.kind] ?? []))) {
        void client.invalidateQueries({ queryKey: key });
      }
      after = page.last;
    } catch (error) {
      if (stop.aborted || (error instanceof Refusal && error.status === 401)) {
        return;
      }
      onLost(true);
      after = undefined; // another one may answer next, which counts from its own beginning
      await new Promise((resolve) => setTimeout(resolve, patience));
      patience = Math.min(patience * 2, 8000);
    }
  }
}
