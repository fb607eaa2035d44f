// Which machines does the reader want to see? The filter lives in the address, so that a link shows the same.
import type { MachineState } from "./api.ts";

export type Sort = "name" | "state" | "age" | "pool" | "zone";

export interface Filter {
  search: string;
  pools: string[];
  zones: string[];
  states: MachineState[];
  attention: boolean;
}

export const NO_FILTER: Filter = { search: "", pools: [], zones: [], states: [], attention: false };

const STATES: readonly string[] = ["well", "starting", "maintenance", "leaving", "attention", "down"];

export function readFilter(query: string): Filter {
  const parameters = new URLSearchParams(query);
  return {
    search: parameters.get("search") ?? "",
    pools: parameters.getAll("pool"),
    zones: parameters.getAll("zone"),
    states: parameters.getAll("state").filter((state): state is MachineState => STATES.includes(state)),
    attention: parameters.get("attention") === "true",
  };
}

/** The same words for the address and for the API, in one order, so that equal filters are equal strings. */
export function writeFilter(filter: Filter): URLSearchParams {
  const parameters = new URLSearchParams();
  if (filter.search.trim() !== "") parameters.set("search", filter.search.trim());
  for (const pool of [...filter.pools].sort()) parameters.append("pool", pool);
  for (const zone of [...filter.zones].sort()) parameters.append("zone", zone);
  for (const state of [...filter.states].sort()) parameters.append("state", state);
  if (filter.attention) parameters.set("attention", "true");
  return parameters;
}

export function isFiltered(filter: Filter): boolean {
  return writeFilter(filter).size > 0;
}

export function toggled<T>(list: T[], item: T): T[] {
  return list.includes(item) ? list.filter((one) => one !== item) : [...list, item];
}

/** How the API and the address say "in no pool" and "in no zone". */
export const NONE = "-";
