// Who reads? The token is kept for this tab only, and goes nowhere but into the header of requests to our own host.
import { tokenInFragment } from "./route.ts";

const KEY = "machinist-token";

/** The token of the address, which is taken out of it at once, or the one that this tab has. */
export function findToken(): string | undefined {
  const given = tokenInFragment(location.hash);
  if (given !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    sessionStorage.setItem(KEY, given);
    return given;
  }
  return sessionStorage.getItem(KEY) ?? undefined;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY);
}
