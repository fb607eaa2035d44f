import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bar, Lane, PlanEntry } from "../../src/api.ts";
import { HEAD, layOut, MOST_ROWS, ROW, shownFrom, shownTo, toX } from "../../src/calendar.ts";

process.env.TZ = "Europe/Berlin";
const FROM = Date.parse("2026-11-01T23:00:00Z");
const SCALE = { from: FROM, to: FROM + 10 * 86_400_000, width: 1_000 };
const at = (days: number) => new Date(FROM + days * 86_400_000).toISOString();

const entry = (machine: string, overrides: Partial<PlanEntry> = {}) =>
  ({
    machine,
    policy: "nights",
    deadline: null,
    latestSafeStart: null,
    standing: { is: "planned" },
    ...overrides,
  }) as PlanEntry;
const bar = (machine: string, day: number, overrides: Partial<PlanEntry> = {}): Bar => ({
  entry: entry(machine, overrides),
  start: at(day),
  end: at(day + 0.01),
  tone: "planned",
});
const lane: Lane = {
  policy: "nights",
  machines: 3,
  paused: null,
  faults: [],
  anyHour: false,
  windows: [{ start: at(5), end: at(5.2), names: ["saturdays"], endsBecause: null }],
  freezes: [{ name: "release", start: at(-3), end: at(1) }],
};
const lay = (bars: Bar[], unplaced: PlanEntry[] = [], lanes = [lane]) =>
  layOut({
    calendar: { bars, unplaced, lanes },
    scale: SCALE,
    now: FROM + 43_200_000,
    labelOf: (one) => one.machine,
    labelWidth: (label) => label.length * 10,
  });
const only = <T>(list: T[] | undefined): T => {
  assert.equal(list?.length, 1);
  return list?.[0] as T;
};

test("times become places, and what lies outside is cut off", () => {
  assert.equal(toX(SCALE, FROM + 86_400_000), 100);
  assert.equal(toX(SCALE, FROM - 1), 0);
  assert.equal(toX(SCALE, SCALE.to + 1), 1_000);
  const placed = only(lay([]).lanes);
  assert.deepEqual(
    placed.windows.map(({ x, width }) => [Math.round(x), Math.round(width)]),
    [[500, 20]],
  );
  assert.deepEqual(
    placed.freezes.map(({ x, width }) => [x, width]),
    [[0, 100]],
  );
  assert.equal(lay([]).nowX, 50);
});

test("bars whose names would overlap stand in rows of their own; others share one", () => {
  const { bars } = only(lay([bar("aaaaa", 1), bar("bbbbb", 1.1), bar("ccccc", 4)]).lanes);
  const rows = bars.map((one) => (one.y - (bars[0]?.y ?? 0)) / ROW);
  assert.deepEqual(rows, [0, 1, 0]);
  assert.ok(
    bars.every((one) => one.width >= 10),
    "minutes are wide enough to hit",
  );
});

test("a name that has no room on the right stands on the left", () => {
  const { bars } = only(lay([bar("a-long-name", 9.8)]).lanes);
  const placed = only(bars);
  assert.equal(placed.labelAnchor, "end");
  assert.ok(placed.labelX < placed.x);
});

test("the way to a deadline is kept free of other bars", () => {
  const { bars } = only(lay([bar("a", 1, { deadline: at(6) }), bar("b", 3)]).lanes);
  assert.equal(bars[0]?.deadlineX, 600);
  assert.notEqual(bars[0]?.y, bars[1]?.y);
});

test("what has no time stands before its deadline, and without a deadline it is not in the drawing", () => {
  const blocked = entry("late", { standing: { is: "blocked" }, deadline: at(3), latestSafeStart: at(2.9) });
  const { bars } = only(lay([], [blocked, entry("other", { standing: { is: "blocked" } })]).lanes);
  const placed = only(bars);
  assert.equal(placed.item.tone, "unplaced");
  assert.ok(placed.x + placed.width <= 300 && placed.x > 250);
});

test("a lane has an end: what finds no row is counted", () => {
  const many = Array.from({ length: MOST_ROWS + 7 }, (_, index) => bar(`machine-with-a-name-${index}`, 1));
  const placed = only(lay(many).lanes);
  assert.equal(placed.bars.length, MOST_ROWS);
  assert.equal(placed.left, 7);
});

test("a bar whose policy has no lane gets one, and lanes follow one another", () => {
  const { lanes, height } = lay([bar("a", 1), bar("b", 2, { policy: null })]);
  assert.deepEqual(
    lanes.map((one) => one.lane.policy),
    ["nights", null],
  );
  assert.equal(lanes[0]?.y, HEAD);
  assert.equal((lanes[0]?.y ?? 0) + (lanes[0]?.height ?? 0), lanes[1]?.y);
  assert.equal(height, (lanes[1]?.y ?? 0) + (lanes[1]?.height ?? 0));
});

test("days are the reader's own, also when the clock is set", () => {
  const from = shownFrom(Date.parse("2026-10-24T15:00:00Z"));
  assert.equal(new Date(from).toISOString(), "2026-10-23T22:00:00.000Z");
  // The night to the 25th of October has 25 hours in Berlin.
  assert.equal(new Date(shownTo(from, 3)).toISOString(), "2026-10-26T23:00:00.000Z");
  const { days } = layOut({
    calendar: { bars: [], unplaced: [], lanes: [] },
    scale: { from, to: shownTo(from, 3), width: 730 },
    now: from,
    labelOf: () => "",
    labelWidth: () => 0,
  });
  assert.deepEqual(
    days.map((day) => [Math.round(day.x), Math.round(day.width), day.isWeekend]),
    [
      [0, 240, true],
      [240, 250, true],
      [490, 240, false],
    ],
  );
});
