import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api, type Schemas } from "../../api/client";
import { keys } from "../../api/keys";
import { forgetKey } from "../../api/session";

export const useSettings = () =>
  createQuery(() => ({ queryKey: [...keys.settings], queryFn: () => answer(api.GET("/v1/settings")) }));

/** Whether a browser and the command line may answer, too. */
export function useOthersAnswer() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (yes: boolean) => answer(api.POST("/v1/settings", { body: { answerOnlyInWindow: !yes } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.settings }),
  }));
}

export function useConsoleInBrowser() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (consoleInBrowser: boolean) =>
      answer(api.POST("/v1/settings", { body: { consoleInBrowser } })),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: keys.settings });
      void client.invalidateQueries({ queryKey: keys.consoles });
    },
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

/** Puts a changed answer of /v1/settings in the place of the old one. */
function useSettingsChange<T, Out>(send: (given: T) => Promise<Out>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: send,
    onSettled: () => {
      void client.invalidateQueries({ queryKey: keys.settings });
      void client.invalidateQueries({ queryKey: keys.plugins });
      void client.invalidateQueries({ queryKey: keys.status });
    },
  }));
}

export const useAddSource = () =>
  useSettingsChange((body: Schemas["SourceChange"]) => answer(api.POST("/v1/sources", { body })));

export const useRemoveSource = () =>
  useSettingsChange((folder: string) => answer(api.POST("/v1/sources/remove", { body: { folder } })));

export const useRetention = () =>
  useSettingsChange((retention: Schemas["RetentionChange"]) =>
    answer(api.POST("/v1/settings", { body: { retention } })),
  );

export const useTimes = () =>
  useSettingsChange((times: Schemas["TimesChange"]) => answer(api.POST("/v1/settings", { body: { times } })));

export const useAutostart = () =>
  createQuery(() => ({ queryKey: [...keys.autostart], queryFn: () => answer(api.GET("/v1/autostart")) }));

export function useSetAutostart() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (on: boolean) => answer(api.POST("/v1/autostart", { body: { on } })),
    onSettled: () => client.invalidateQueries({ queryKey: keys.autostart }),
  }));
}

export const useUpdates = () =>
  createQuery(() => ({ queryKey: [...keys.updates], queryFn: () => answer(api.GET("/v1/updates")) }));

/** Asks outside, and so only when somebody says so. */
export const useCheckUpdates = () =>
  createMutation(() => ({ mutationFn: () => answer(api.POST("/v1/updates/check", { body: {} })) }));

export const useSaveDiagnostics = () =>
  createMutation(() => ({ mutationFn: () => answer(api.POST("/v1/diagnostics/save")) }));

/** Fetches them by this page's own proof, so that no token is in an address. */
export const useDiagnostics = () =>
  createMutation(() => ({ mutationFn: () => answer(api.GET("/v1/diagnostics")) }));
