// Which view does the address name? Real paths: the operator answers each of them with this page.

export type Route =
  | { view: "fleet"; query: string }
  | { view: "machine"; name: string }
  | { view: "plan"; query: string }
  | { view: "drift" }
  | { view: "nowhere"; path: string };

export function routeOf(path: string, query: string): Route {
  const parts = path.split("/").filter((part) => part !== "");
  if (parts.length === 0) return { view: "fleet", query };
  if (parts.length === 1 && parts[0] === "plan") return { view: "plan", query };
  if (parts.length === 1 && parts[0] === "drift") return { view: "drift" };
  // A machine of Cluster API has a slash in its name, which some proxies decode.
  if ((parts.length === 2 || parts.length === 3) && parts[0] === "machines") {
    try {
      return { view: "machine", name: parts.slice(1).map(decodeURIComponent).join("/") };
    } catch {
      return { view: "nowhere", path };
    }
  }
  return { view: "nowhere", path };
}

export function machinePath(name: string): string {
  return `/machines/${encodeURIComponent(name)}`;
}

/** The token that `machinist up` puts behind the address; it is taken out of it at once. */
export function tokenInFragment(fragment: string): string | undefined {
  const token = new URLSearchParams(fragment.replace(/^#/, "")).get("token");
  return token === null || token.trim() === "" ? undefined : token.trim();
}
