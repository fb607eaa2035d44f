// What does the reader want to try? A policy with other windows or freezes, and events that might come; made into the
// question that the operator answers. Whether a window is valid is the operator's to say.
import type { PolicyView, WhatIf } from "./api.ts";
import { fromInput } from "./time.ts";

export interface TriedWindow {
  name: string;
  rule: "cron" | "rrule";
  schedule: string;
  duration: string;
  timeZone: string;
  /** The window as it was read, with what the form does not show. */
  origin: Record<string, unknown>;
}

export interface TriedFreeze {
  name: string;
  /** Of `<input type="datetime-local">`. */
  from: string;
  to: string;
}

export interface TriedEvent {
  machine: string;
  code: string;
  notBefore: string;
}

export interface Attempt {
  policy: string | null;
  windows: TriedWindow[];
  /** Names of the policy's own freezes that are left out. */
  withoutFreezes: string[];
  freezes: TriedFreeze[];
  events: TriedEvent[];
}

export const NO_ATTEMPT: Attempt = { policy: null, windows: [], withoutFreezes: [], freezes: [], events: [] };

export function windowsOf(policy: PolicyView): TriedWindow[] {
  return list(policy.spec, "windows").map((window) => {
    const rule = typeof window.rrule === "string" ? "rrule" : "cron";
    return {
      name: text(window.name),
      rule,
      schedule: text(window[rule]),
      duration: text(window.duration),
      timeZone: text(window.timeZone),
      origin: window,
    };
  });
}

export function freezeNames(policy: PolicyView): string[] {
  return list(policy.spec, "freezes").map((freeze) => text(freeze.name));
}

export function newWindow(taken: string[]): TriedWindow {
  let name = "tried";
  for (let count = 2; taken.includes(name); count += 1) name = `tried-${count}`;
  return { name, rule: "cron", schedule: "0 2 * * *", duration: "3h", timeZone: "", origin: {} };
}

export function questionOf(attempt: Attempt, policies: PolicyView[]): WhatIf {
  const chosen =
    attempt.policy === null ? undefined : policies.find((policy) => policy.name === attempt.policy);
  return {
    policies: chosen ? [manifest(chosen, attempt)] : [],
    withoutPolicies: [],
    events: attempt.events
      .filter((event) => event.machine.trim() !== "")
      .map((event) => ({
        machine: event.machine.trim(),
        code: event.code,
        notBefore: fromInput(event.notBefore) ?? event.notBefore,
        movableUntil: null,
      })),
    requests: [],
  };
}

/** Whether there is anything to ask. */
export function isQuestion(question: WhatIf): boolean {
  return question.policies.length + question.events.length + question.requests.length > 0;
}

function manifest(policy: PolicyView, attempt: Attempt): object {
  const spec: Record<string, unknown> = { ...(policy.spec as Record<string, unknown> | null) };
  const kept = list(policy.spec, "freezes").filter(
    (freeze) => !attempt.withoutFreezes.includes(text(freeze.name)),
  );
  const added = attempt.freezes.map(({ name, from, to }) => ({ name, from, to, timeZone: zoneHere() }));
  return {
    apiVersion: "machinist.dev/v1alpha1",
    kind: "MaintenancePolicy",
    metadata: { name: policy.name },
    spec: { ...spec, windows: attempt.windows.map(windowOf), freezes: [...kept, ...added] },
  };
}

function windowOf(window: TriedWindow): object {
  const { cron: _cron, rrule: _rrule, timeZone: _zone, ...rest } = window.origin;
  const zone = window.timeZone.trim();
  return {
    ...rest,
    name: window.name.trim(),
    [window.rule]: window.schedule.trim(),
    duration: window.duration.trim(),
    ...(zone === "" ? {} : { timeZone: zone }),
  };
}

function zoneHere(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function list(spec: unknown, key: string): Record<string, unknown>[] {
  const found = (spec as Record<string, unknown> | null)?.[key];
  return Array.isArray(found) ? (found as Record<string, unknown>[]) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
