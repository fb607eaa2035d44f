import assert from "node:assert/strict";
import { test } from "node:test";
import type { PolicyView } from "../../src/api.ts";
import { distance, fromInput, splitTimes } from "../../src/time.ts";
import { freezeNames, isQuestion, NO_ATTEMPT, newWindow, questionOf, windowsOf } from "../../src/what_if.ts";

const NOW = Date.parse("2026-11-02T10:00:00Z");

test("how far away a moment is, in two units at most", () => {
  const cases: [string, string][] = [
    ["2026-11-02T09:59:31Z", "just now"],
    ["2026-11-02T10:00:30Z", "in a moment"],
    ["2026-11-02T09:30:00Z", "30m ago"],
    ["2026-11-02T12:05:00Z", "in 2h 5m"],
    ["2026-11-01T22:00:00Z", "12h ago"],
    ["2026-11-04T13:00:00Z", "in 2d 3h"],
    ["2026-12-02T13:00:00Z", "in 30d"],
  ];
  for (const [time, words] of cases) assert.equal(distance(time, NOW), words);
});

test("moments in a sentence are found, and every letter stays", () => {
  const sentence = "due 2026-11-10T00:00:00Z; work may begin at 2026-11-07T21:00:00.5Z";
  const parts = splitTimes(sentence);
  assert.deepEqual(
    parts.map((part) => part.isTime),
    [false, true, false, true],
  );
  assert.equal(parts.map((part) => part.text).join(""), sentence);
  assert.deepEqual(splitTimes(""), []);
});

const POLICY = {
  name: "nights",
  spec: {
    selector: { roles: ["worker"] },
    windows: [
      { name: "saturdays", cron: "0 22 * * 6", duration: "4h", timeZone: "Europe/Berlin" },
      {
        name: "second",
        rrule: "FREQ=MONTHLY;BYDAY=2SA",
        duration: "2h",
        start: "2026-01-03T22:00",
        except: ["2026-12-26"],
      },
    ],
    freezes: [{ name: "year-end", from: "2026-12-18T00:00", to: "2027-01-04T00:00" }],
  },
} as unknown as PolicyView;

test("a policy that is tried unchanged is the policy as it is stored", () => {
  const attempt = { ...NO_ATTEMPT, policy: "nights", windows: windowsOf(POLICY) };
  const [manifest] = questionOf(attempt, [POLICY]).policies as { metadata: unknown; spec: unknown }[];
  assert.deepEqual(manifest?.metadata, { name: "nights" });
  assert.deepEqual(manifest?.spec, POLICY.spec);
});

test("what is changed in the form is in the question, and only that", () => {
  const windows = windowsOf(POLICY);
  const attempt = {
    ...NO_ATTEMPT,
    policy: "nights",
    windows: [
      { ...windows[0], rule: "rrule" as const, schedule: " FREQ=DAILY ", timeZone: "" },
      newWindow(["tried"]),
    ] as typeof windows,
    withoutFreezes: freezeNames(POLICY),
    events: [
      { machine: " worker-1 ", code: "instance-stop", notBefore: "2026-11-10T01:00" },
      { machine: "", code: "instance-stop", notBefore: "2026-11-10T01:00" },
    ],
  };
  const question = questionOf(attempt, [POLICY]);
  const [manifest] = question.policies as { spec: Record<string, unknown> }[];
  assert.deepEqual(manifest?.spec.windows, [
    { name: "saturdays", rrule: "FREQ=DAILY", duration: "4h" },
    { name: "tried-2", cron: "0 2 * * *", duration: "3h" },
  ]);
  assert.deepEqual(manifest?.spec.freezes, []);
  assert.deepEqual(question.events, [
    {
      machine: "worker-1",
      code: "instance-stop",
      notBefore: fromInput("2026-11-10T01:00"),
      movableUntil: null,
    },
  ]);
});

test("an empty form asks nothing", () => {
  assert.equal(isQuestion(questionOf(NO_ATTEMPT, [POLICY])), false);
});
