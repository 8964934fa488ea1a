import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api, type Schemas } from "../../api/client";
import { keys } from "../../api/keys";
import { forgetKey } from "../../api/session";

export const useSettings = () =>
  createQuery(() => ({ queryKey: [...keys.settings], queryFn: () => answer(api.GET("/v1/settings")) }));

export function useOnlyWindow() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (answerOnlyInWindow: boolean) =>
      answer(api.POST("/v1/settings", { body: { answerOnlyInWindow } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.settings }),
  }));
}

export const usePolicy = () =>
  createQuery(() => ({ queryKey: [...keys.policy], queryFn: () => answer(api.GET("/v1/policy")) }));

export function useChangePolicy() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (change: Schemas["PolicyChange"]) => answer(api.POST("/v1/policy", { body: change })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.policy }),
  }));
}

export type Place = "keyring" | "file";

export function useMoveSealKey() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (place: Place) => answer(api.POST("/v1/seal-key/move", { body: { to: place } })),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: keys.keyring });
      void client.invalidateQueries({ queryKey: keys.status });
    },
  }));
}

export function useRescan() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => answer(api.POST("/v1/plugins/scan")),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: keys.plugins });
      void client.invalidateQueries({ queryKey: keys.settings });
    },
  }));
}

/** Ends this browser's session; every question is then refused, and the pages say how to get in again. */
export function useSignOut() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => answer(api.DELETE("/v1/session")),
    onSuccess: () => {
      forgetKey();
      return client.resetQueries();
    },
  }));
}
