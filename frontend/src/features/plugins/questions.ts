import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api } from "../../api/client";
import { keys } from "../../api/keys";

export type Subject = { plugin: string; server: string };

export const useConnector = (subject: () => Subject) =>
  createQuery(() => ({
    queryKey: [...keys.plugins, "one", subject().plugin, subject().server],
    queryFn: () => answer(api.GET("/v1/plugins/{plugin}/{server}", { params: { path: subject() } })),
  }));

export type Act = "enable" | "disable" | "revoke";

/** What the operator does to a connector in one word. */
export function useAct(subject: () => Subject) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (act: Act) => {
      const init = { params: { path: subject() } };
      switch (act) {
        case "enable":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/enable", init));
        case "disable":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/disable", init));
        case "revoke":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/revoke", init));
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.plugins }),
  }));
}

export function useUninstall() {
  return createMutation(() => ({
    mutationFn: (plugin: string) =>
      answer(api.POST("/v1/plugins/{plugin}/uninstall", { params: { path: { plugin } }, body: {} })),
  }));
}
