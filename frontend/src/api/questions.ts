import { createQuery } from "@tanstack/svelte-query";
import { answer, api } from "./client";
import { keys } from "./keys";

/** The questions that more than one page asks. A feature's own stand in its folder. */

export const useStatus = () =>
  createQuery(() => ({ queryKey: [...keys.status], queryFn: () => answer(api.GET("/v1/status")) }));

export const usePlugins = () =>
  createQuery(() => ({ queryKey: [...keys.plugins, "list"], queryFn: () => answer(api.GET("/v1/plugins")) }));

export const useDecisions = () =>
  createQuery(() => ({
    queryKey: [...keys.decisions, "list"],
    queryFn: () => answer(api.GET("/v1/decisions")),
  }));
