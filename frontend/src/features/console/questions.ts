import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api, type Schemas } from "../../api/client";
import { keys } from "../../api/keys";
import type { Wire } from "./link";

export type Subject = { plugin: string; server: string };

export const useConsoles = () =>
  createQuery(() => ({
    queryKey: [...keys.consoles],
    queryFn: () => answer(api.GET("/v1/consoles")),
    staleTime: 0,
  }));

export function useOpen(subject: () => Subject) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (size: { cols: number; rows: number }) =>
      answer(api.POST("/v1/plugins/{plugin}/{server}/console", { params: { path: subject() }, body: size })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.consoles }),
  }));
}

export function useClose() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (id: string) => answer(api.DELETE("/v1/consoles/{id}", { params: { path: { id } } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.consoles }),
  }));
}

/** A console's two directions. What is given up by stop is not waited for. */
export function wire(id: string, stop: AbortSignal): Wire<Schemas["ConsoleOutput"]> {
  const path = { id };
  return {
    output: (after) =>
      answer(
        api.GET("/v1/consoles/{id}/output", {
          params: { path, query: { after: String(after), wait: "20s" } },
          signal: stop,
        }),
      ),
    input: (data) => answer(api.POST("/v1/consoles/{id}/input", { params: { path }, body: { data } })),
    size: (cols, rows) =>
      answer(api.POST("/v1/consoles/{id}/size", { params: { path }, body: { cols, rows } })),
  };
}
