/** Where the page is: the fragment of the address, so that it works in a window and in a browser alike. */

export type Route = { path: string; parts: string[]; query: URLSearchParams };

function read(): Route {
  const [path = "/", search = ""] = location.hash.replace(/^#/, "").split("?");
  return {
    path: path || "/",
    parts: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(search),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

class Router {
  route = $state.raw<Route>(read());

  constructor() {
    addEventListener("hashchange", () => {
      this.route = read();
    });
  }

  go(path: string): void {
    location.hash = path;
  }

  /** Another address for what is shown already, such as a tab or a filter: no step in the history. */
  replace(path: string): void {
    history.replaceState(history.state, "", `#${path}`);
    this.route = read();
  }
}

export const router = new Router();

/** Builds an address out of parts that may hold anything. */
export function to(...parts: string[]): string {
  return "#/" + parts.map(encodeURIComponent).join("/");
}
