// What is a state called? As the operator says; told once, before anything is drawn.
import type { MachineState, State } from "./api.ts";

const titles = new Map<MachineState, string>();

export function learnStates(states: State[]): void {
  for (const { word, title } of states) titles.set(word, title);
}

export function titleOf(state: MachineState): string {
  return titles.get(state) ?? state;
}
