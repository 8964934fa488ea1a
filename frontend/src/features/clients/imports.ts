import type { Schemas } from "../../api/client";

export type Row = { id: string; file: Schemas["ImportFile"]; server: Schemas["ImportServer"] };

/** The entries worth showing: Sallyport's own is none, and what says the same as another is shown once. */
export function importable(files: readonly Schemas["ImportFile"][]): Row[] {
  return files.flatMap((file) =>
    file.servers
      .filter((server) => !server.own && !server.sameAs)
      .map((server) => ({
        id: `${file.client} ${file.file} ${file.project ?? ""} ${server.name}`,
        file,
        server,
      })),
  );
}
