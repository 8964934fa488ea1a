import { createQuery } from "@tanstack/svelte-query";
import { answer, api } from "../../api/client";
import { keys } from "../../api/keys";

/** The refusals of late, newest first. */
export const useRefusals = () =>
  createQuery(() => ({
    queryKey: [...keys.audit, "refused"],
    queryFn: () =>
      answer(api.GET("/v1/plugins/audit", { params: { query: { result: "refused", limit: "5" } } })),
    // A call is no event of its own.
    refetchInterval: 4000,
    staleTime: 0,
  }));

/** The calls of late, newest first. */
export const useCalls = () =>
  createQuery(() => ({
    queryKey: [...keys.audit, "called"],
    queryFn: () =>
      answer(api.GET("/v1/plugins/audit", { params: { query: { action: "call", limit: "50" } } })),
    refetchInterval: 4000,
    staleTime: 0,
  }));
