import { createMutation, createQuery } from "@tanstack/svelte-query";
import { answer, api } from "../../api/client";
import { keys } from "../../api/keys";
import { byDay, since } from "./days";
import type { Asked } from "./filter";
import type { Page } from "./timeline.svelte";

const perPage = "500";

export const page = (asked: Asked, cursor: string | undefined, stop: AbortSignal): Promise<Page> =>
  answer(
    api.GET("/v1/plugins/audit", {
      params: { query: { ...asked, limit: perPage, ...(cursor ? { cursor } : {}) } },
      signal: stop,
    }),
  );

/** Whether there is anything newer than what is shown. */
export const useNewer = (asked: () => Asked, after: () => number | undefined) =>
  createQuery(() => ({
    queryKey: [...keys.audit, "newer", asked(), after()],
    enabled: after() !== undefined,
    refetchInterval: 10_000,
    staleTime: 0,
    gcTime: 0,
    queryFn: () =>
      answer(
        api.GET("/v1/plugins/audit", {
          params: { query: { ...asked(), after: String(after()), limit: "100" } },
        }),
      ),
  }));

/** Calls and refusals of the last seven days. */
export const useActivity = () =>
  createQuery(() => ({
    queryKey: [...keys.audit, "activity"],
    refetchInterval: 60_000,
    queryFn: async () => {
      const now = new Date();
      const { hours } = await answer(
        api.GET("/v1/audit/activity", { params: { query: { since: since(now) } } }),
      );
      return byDay(hours, now);
    },
  }));

export const useVerify = () =>
  createMutation(() => ({ mutationFn: () => answer(api.POST("/v1/audit/verify")) }));

/** Fetches an export by this page's own proof, so that no token is in an address, and hands it over as a file. */
export const useExport = () =>
  createMutation(() => ({
    mutationFn: async ({ asked, format }: { asked: Asked; format: "jsonl" | "csv" }) => {
      const got = await api.GET("/v1/audit/export", {
        params: { query: { ...asked, format } },
        parseAs: "blob",
      });
      const file = (await answer(Promise.resolve(got as typeof got & { data?: object }))) as unknown as Blob;
      const address = URL.createObjectURL(file);
      const link = document.createElement("a");
      link.href = address;
      link.download = `sallyport-audit.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    },
  }));
