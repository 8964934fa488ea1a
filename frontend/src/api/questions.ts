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

/** How the keyring is now. It is asked for the answer, within its time limit, so that it is not asked often. */
export const useKeyring = () =>
  createQuery(() => ({ queryKey: [...keys.keyring], queryFn: () => answer(api.GET("/v1/keyring")) }));
