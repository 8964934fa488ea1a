import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api, type Schemas } from "../../api/client";
import { keys } from "../../api/keys";

export const useClients = () =>
  createQuery(() => ({ queryKey: [...keys.clients, "list"], queryFn: () => answer(api.GET("/v1/clients")) }));

export const useClient = (name: () => string) =>
  createQuery(() => ({
    queryKey: [...keys.clients, "one", name()],
    queryFn: () => answer(api.GET("/v1/clients/{name}", { params: { path: { name: name() } } })),
    // That it was seen is no event.
    refetchInterval: 5000,
  }));

export const useTools = () =>
  createQuery(() => ({ queryKey: [...keys.tools, "list"], queryFn: () => answer(api.GET("/v1/tools")) }));

export const usePrograms = () =>
  createQuery(() => ({
    queryKey: [...keys.clients, "programs"],
    queryFn: () => answer(api.GET("/v1/connect")),
  }));

export const useImportable = () =>
  createQuery(() => ({
    queryKey: [...keys.clients, "importable"],
    queryFn: () => answer(api.GET("/v1/import", { params: { query: {} } })),
  }));

/** A change of a client; what is known of clients is asked again after it. Nothing of the answer is kept: it may be a
 * token. */
function useChange<In, Out>(change: (given: In) => Promise<Out>) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: change,
    gcTime: 0,
    onSettled: () => client.invalidateQueries({ queryKey: keys.clients }),
  }));
}

export const useAdd = () =>
  useChange((given: Schemas["NewClient"]) => answer(api.POST("/v1/clients", { body: given })));

export const useRotate = () =>
  useChange((name: string) => answer(api.POST("/v1/clients/{name}/rotate", { params: { path: { name } } })));

export const useRemove = () =>
  useChange((name: string) => answer(api.DELETE("/v1/clients/{name}", { params: { path: { name } } })));

export type Change = { kind: "grant" | "revoke"; change: Schemas["ScopeChange"] };

export const useScope = (name: () => string) =>
  useChange(({ kind, change }: Change) => {
    const init = { params: { path: { name: name() } }, body: change };
    return answer(
      kind === "grant"
        ? api.POST("/v1/clients/{name}/grant", init)
        : api.POST("/v1/clients/{name}/revoke", init),
    );
  });

/** Which writing of a program's file is meant. */
export type Writing = { name: string; undo: boolean; project?: string; removeImported: boolean };

const asked = (w: Writing, plan?: string): Schemas["Connecting"] => ({
  ...(w.project ? { project: w.project } : {}),
  ...(w.removeImported && !w.undo ? { removeImported: true } : {}),
  ...(plan ? { plan } : {}),
});

/** Exactly what would be written. It is asked anew whenever it is looked at: the file is somebody else's. */
export const usePlan = (writing: () => Writing | undefined) =>
  createQuery(() => ({
    queryKey: ["plan", writing()],
    enabled: writing() !== undefined,
    staleTime: 0,
    gcTime: 0,
    queryFn: () => {
      const w = writing()!;
      const init = { params: { path: { name: w.name } }, body: asked(w) };
      return answer(
        w.undo ? api.POST("/v1/connect/{name}/undo/plan", init) : api.POST("/v1/connect/{name}/plan", init),
      );
    },
  }));

export const useWrite = () =>
  useChange(({ writing, plan }: { writing: Writing; plan: string }) => {
    const init = { params: { path: { name: writing.name } }, body: asked(writing, plan) };
    return answer(
      writing.undo ? api.POST("/v1/connect/{name}/undo", init) : api.POST("/v1/connect/{name}", init),
    );
  });

/** Takes entries over as connectors that nobody has approved. Values stay where they are unless the person says
 * that they go to the keyring. */
export function useImport() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: (given: Schemas["Importing"]) => answer(api.POST("/v1/import", { body: given })),
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: keys.clients }),
        client.invalidateQueries({ queryKey: keys.plugins }),
        client.invalidateQueries({ queryKey: keys.secrets }),
      ]),
  }));
}
