import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api } from "../../api/client";
import { keys } from "../../api/keys";
import { encoded } from "./value";

export const useSecrets = () =>
  createQuery(() => ({ queryKey: [...keys.secrets], queryFn: () => answer(api.GET("/v1/secrets")) }));

/** What a change makes stale. Events say it as well, a moment later. */
function useStale() {
  const client = useQueryClient();
  return () => {
    for (const queryKey of [keys.secrets, keys.keyring, keys.plugins]) {
      void client.invalidateQueries({ queryKey });
    }
  };
}

/** Keeps a value. It is fetched when it is sent and is no argument, so that no cache keeps it. */
export function useSetSecret(typed: () => { name: string; value: string }) {
  const onSettled = useStale();
  return createMutation(() => ({
    mutationFn: () => {
      const { name, value } = typed();
      return answer(api.POST("/v1/secrets", { body: { name, value: encoded(value) } }));
    },
    onSettled,
  }));
}

export function useDeleteSecret() {
  const onSettled = useStale();
  return createMutation(() => ({
    mutationFn: (name: string) => answer(api.DELETE("/v1/secrets/{name}", { params: { path: { name } } })),
    onSettled,
  }));
}
