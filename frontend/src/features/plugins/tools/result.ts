import { member, stringOf, type Node } from "../../../text/json";

/** One part of what a tool answered. Images and sounds are told of, and never shown. */
export type Part =
  | { kind: "text"; text: string }
  | { kind: "media"; what: string; mime: string; bytes: number }
  | { kind: "link"; uri: string; name: string }
  | { kind: "resource"; uri: string; text?: string; mime: string; bytes: number }
  | { kind: "other"; node: Node };

export type Result = { parts: Part[]; structured?: Node; isError: boolean; odd?: Node };

/** Reads a result of tools/call. What is not one is shown whole. */
export function readResult(node: Node): Result {
  const content = member(node, "content");
  const error = member(node, "isError");
  const isError = error?.kind === "literal" && error.text === "true";
  const structured = member(node, "structuredContent");
  if (content?.kind !== "array") {
    return { parts: [], isError, odd: node };
  }
  return { parts: content.items.map(partOf), isError, ...(structured ? { structured } : {}) };
}

function partOf(node: Node): Part {
  const of = (name: string): string | undefined => stringOf(member(node, name));
  switch (of("type")) {
    case "text": {
      const text = of("text");
      return text === undefined ? { kind: "other", node } : { kind: "text", text };
    }
    case "image":
    case "audio":
      return {
        kind: "media",
        what: of("type")!,
        mime: of("mimeType") ?? "",
        bytes: sizeOf(of("data") ?? ""),
      };
    case "resource_link":
      return { kind: "link", uri: of("uri") ?? "", name: of("name") ?? "" };
    case "resource": {
      const resource = member(node, "resource");
      const text = stringOf(member(resource, "text"));
      return {
        kind: "resource",
        uri: stringOf(member(resource, "uri")) ?? "",
        mime: stringOf(member(resource, "mimeType")) ?? "",
        bytes: sizeOf(stringOf(member(resource, "blob")) ?? ""),
        ...(text === undefined ? {} : { text }),
      };
    }
  }
  return { kind: "other", node };
}

/** How many bytes a base64 text stands for. */
export function sizeOf(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}
