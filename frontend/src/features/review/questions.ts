import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api, Refusal, type Schemas } from "../../api/client";
import { keys } from "../../api/keys";

export const useDecision = (id: () => string) =>
  createQuery(() => ({
    queryKey: [...keys.decisions, "one", id()],
    queryFn: () => answer(api.GET("/v1/decisions/{id}", { params: { path: { id: id() } } })),
  }));

/** Splits PLUGIN/SERVER; a server's name may hold a slash, a plugin's may not. */
export function split(subject: string): { plugin: string; server: string } {
  const at = subject.indexOf("/");
  return at < 0
    ? { plugin: subject, server: "" }
    : { plugin: subject.slice(0, at), server: subject.slice(at + 1) };
}

export const useReview = (subject: () => string, wanted: () => boolean) =>
  createQuery(() => ({
    queryKey: [...keys.plugins, "review", subject()],
    enabled: wanted(),
    queryFn: () =>
      answer(api.GET("/v1/plugins/{plugin}/{server}/review", { params: { path: split(subject()) } })),
  }));

/** Follows the first try of a decision by a long poll: each answer asks for the next. Where there is none (it was
 * forgotten, or nothing was tried), there is nothing to show and nothing wrong. */
export const useProbe = (id: () => string, running: () => boolean) =>
  createQuery<Schemas["Probe"] | null>(() => ({
    queryKey: ["probe", id()],
    retry: false,
    staleTime: Infinity,
    gcTime: 0,
    // Also after the decision is known to be closed, until the end of the try has been seen.
    refetchInterval: ({ state: { data } }) => ((data ? data.state === "running" : running()) ? 200 : false),
    queryFn: async ({ client, queryKey }) => {
      const known = client.getQueryData<Schemas["Probe"] | null>(queryKey);
      const query = known?.state === "running" ? { after: `${known.revision}`, wait: "2s" } : { wait: "0s" };
      try {
        return await answer(api.GET("/v1/decisions/{id}/probe", { params: { path: { id: id() }, query } }));
      } catch (error) {
        if (error instanceof Refusal && error.code === "no-probe") return null;
        throw error;
      }
    },
  }));

/** Ends the first try. Nothing is approved by it and nothing denied. */
export function useCancel(id: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => answer(api.POST("/v1/decisions/{id}/cancel", { params: { path: { id: id() } } })),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.decisions }),
        client.invalidateQueries({ queryKey: keys.plugins }),
      ]),
  }));
}

/** Answers a decision once. What follows it comes back: the next question, or what became of this one. */
export function useAnswer(id: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (given: Schemas["Answer"]) =>
      answer(api.POST("/v1/decisions/{id}/answer", { params: { path: { id: id() } }, body: given })),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.decisions }),
        client.invalidateQueries({ queryKey: keys.plugins }),
      ]),
  }));
}

/** Asks whether a connector may run; the decision that it opens comes back. */
export function useAsk() {
  return createMutation(() => ({
    mutationFn: (subject: string) =>
      answer(api.POST("/v1/plugins/{plugin}/{server}/ask", { params: { path: split(subject) } })),
  }));
}

/** Asks anew which tools of an enabled connector agents may call, with what its server offers now. */
export function useAskTools() {
  return createMutation(() => ({
    mutationFn: (subject: string) =>
      answer(api.POST("/v1/plugins/{plugin}/{server}/ask-tools", { params: { path: split(subject) } })),
  }));
}
