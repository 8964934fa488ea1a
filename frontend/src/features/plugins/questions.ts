import { createMutation, createQuery, useQueryClient } from "@tanstack/svelte-query";
import { answer, api } from "../../api/client";
import { keys } from "../../api/keys";
import type { Copy } from "./files";

export type Subject = { plugin: string; server: string };

const one = ({ plugin, server }: Subject, what: string) => [...keys.plugins, what, plugin, server];

export const useConnector = (subject: () => Subject) =>
  createQuery(() => ({
    queryKey: one(subject(), "one"),
    queryFn: () => answer(api.GET("/v1/plugins/{plugin}/{server}", { params: { path: subject() } })),
  }));

export type Act = "enable" | "disable" | "revoke" | "start" | "stop" | "restart";

/** What takes an act back, where something does. */
export const undoes: Partial<Record<Act, Act>> = {
  enable: "disable",
  disable: "enable",
  start: "stop",
  stop: "start",
};

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
        case "start":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/start", init));
        case "stop":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/stop", init));
        case "restart":
          return answer(api.POST("/v1/plugins/{plugin}/{server}/restart", init));
      }
    },
    onSettled: () => client.invalidateQueries({ queryKey: keys.plugins }),
  }));
}

/** Asks whether an installed plugin may be removed, with purge what it has stored as well. */
export function useUninstall() {
  return createMutation(() => ({
    mutationFn: ({ plugin, purge }: { plugin: string; purge: boolean }) =>
      answer(
        api.POST("/v1/plugins/{plugin}/uninstall", {
          params: { path: { plugin } },
          body: purge ? { purge } : {},
        }),
      ),
  }));
}

/** Asks whether the version before may take its place again. */
export function useUndoUpdate() {
  return createMutation(() => ({
    mutationFn: (plugin: string) =>
      answer(api.POST("/v1/plugins/{plugin}/undo", { params: { path: { plugin } } })),
  }));
}

/** What begins to stage a bundle. */
export type Staging =
  | { what: "install"; source: string }
  | { what: "update"; plugin: string; source?: string; version?: string }
  | { what: "vendor"; subject: Subject };

export function useStaging() {
  return createMutation(() => ({
    mutationFn: (staging: Staging) => {
      switch (staging.what) {
        case "install":
          return answer(api.POST("/v1/installations", { body: { source: staging.source } }));
        case "update": {
          const { plugin, source, version } = staging;
          return answer(
            api.POST("/v1/plugins/{plugin}/update", {
              params: { path: { plugin } },
              body: { ...(source && { source }), ...(version && { version }) },
            }),
          );
        }
        case "vendor":
          return answer(
            api.POST("/v1/plugins/{plugin}/{server}/vendor", {
              params: { path: staging.subject },
              body: {},
            }),
          );
      }
    },
  }));
}

/** How far an installation has come: asked again and again while it goes on. */
export const useInstallation = (id: () => string) =>
  createQuery(() => ({
    queryKey: [...keys.installations, id()],
    queryFn: () =>
      answer(api.GET("/v1/installations/{installation}", { params: { path: { installation: id() } } })),
    refetchInterval: (query) => (query.state.data?.state === "staging" ? 700 : false),
    staleTime: 0,
    gcTime: 0,
  }));

export function useCancelInstallation(id: () => string) {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () =>
      answer(
        api.POST("/v1/installations/{installation}/cancel", { params: { path: { installation: id() } } }),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: [...keys.installations, id()] }),
  }));
}

export const useFiles = (subject: () => Subject) =>
  createQuery(() => ({
    queryKey: one(subject(), "files"),
    queryFn: () => answer(api.GET("/v1/plugins/{plugin}/{server}/files", { params: { path: subject() } })),
  }));

export const useFile = (subject: () => Subject, path: () => string, copy: () => Copy) =>
  createQuery(() => ({
    queryKey: [...one(subject(), "file"), path(), copy()],
    queryFn: () =>
      answer(
        api.GET("/v1/plugins/{plugin}/{server}/file", {
          params: { path: subject(), query: { path: path(), copy: copy() } },
        }),
      ),
  }));

/** The end of the error output, asked for again as long as somebody looks at it. */
export const useLog = (subject: () => Subject, follow: () => boolean) =>
  createQuery(() => ({
    queryKey: one(subject(), "log"),
    queryFn: () => answer(api.GET("/v1/plugins/{plugin}/{server}/log", { params: { path: subject() } })),
    refetchInterval: follow() ? 1500 : false,
    staleTime: 0,
    gcTime: 0,
  }));

export function useRescan() {
  const client = useQueryClient();
  return createMutation(() => ({
    mutationFn: () => answer(api.POST("/v1/plugins/scan")),
    onSettled: () => client.invalidateQueries({ queryKey: keys.plugins }),
  }));
}
