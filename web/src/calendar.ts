// Where does each thing of the calendar go? From times to pixels, and bars into rows where nothing overlaps.
//
// Pure: the width is given, and so is how wide a label is. A maintenance takes minutes and the calendar shows weeks,
// so a bar has a least width and its name stands beside it; rows are packed by what is drawn, not by the minutes.
import type { Bar, CalendarView, Lane, PlanEntry } from "./api.ts";
import { DAY } from "./time.ts";

export const ROW = 22;
export const BAR = 14;
export const LEAST_BAR = 10;
export const HEAD = 46;
const LANE_HEAD = 22;
const LANE_FOOT = 8;
/** More rows than this in one lane help nobody: the rest is in the list below. */
export const MOST_ROWS = 24;

export interface Scale {
  from: number;
  to: number;
  width: number;
}

export function toX(scale: Scale, time: number): number {
  const clamped = Math.min(Math.max(time, scale.from), scale.to);
  return ((clamped - scale.from) / (scale.to - scale.from)) * scale.width;
}

export interface Band {
  x: number;
  width: number;
  title: string;
}

/** A bar of the calendar, or what has no time: it stands where it would have had to be done. */
export interface Item {
  entry: PlanEntry;
  start: string;
  end: string;
  tone: Bar["tone"] | "unplaced" | "alone";
}

export interface PlacedBar {
  item: Item;
  x: number;
  width: number;
  y: number;
  label: string;
  labelX: number;
  labelAnchor: "start" | "end";
  /** Where its deadline is drawn; nothing when it lies outside of what is shown. */
  deadlineX: number | undefined;
}

export interface PlacedLane {
  lane: Lane;
  y: number;
  height: number;
  windows: Band[];
  freezes: Band[];
  bars: PlacedBar[];
  /** Bars for which there was no row. */
  left: number;
}

export interface DayMark {
  x: number;
  width: number;
  time: number;
  isWeekend: boolean;
}

export interface Layout {
  width: number;
  height: number;
  days: DayMark[];
  lanes: PlacedLane[];
  nowX: number | undefined;
}

export interface LayoutInput {
  calendar: Pick<CalendarView, "lanes" | "bars" | "unplaced">;
  scale: Scale;
  now: number;
  labelOf: (entry: PlanEntry) => string;
  labelWidth: (label: string) => number;
}

export function layOut({ calendar, scale, now, labelOf, labelWidth }: LayoutInput): Layout {
  let y = HEAD;
  const items = itemsOf(calendar);
  const lanes = lanesOf(calendar.lanes, items).map((lane) => {
    const here = items.filter(
      (item) => item.entry.policy === lane.policy && touches(scale, item.start, item.end),
    );
    const { placed, rows, left } = pack(here, scale, labelOf, labelWidth);
    const top = y + LANE_HEAD;
    for (const one of placed) one.y += top;
    const height = LANE_HEAD + Math.max(1, rows) * ROW + LANE_FOOT;
    const result: PlacedLane = {
      lane,
      y,
      height,
      windows: lane.anyHour
        ? [{ x: 0, width: scale.width, title: "work may begin at any hour" }]
        : bands(scale, lane.windows, (window) => window.names.join(", ")),
      freezes: bands(scale, lane.freezes, (freeze) => freeze.name),
      bars: placed,
      left,
    };
    y += height;
    return result;
  });
  const nowX = now >= scale.from && now <= scale.to ? toX(scale, now) : undefined;
  return { width: scale.width, height: y, days: days(scale), lanes, nowX };
}

function itemsOf({ bars, unplaced }: Pick<CalendarView, "bars" | "unplaced">): Item[] {
  const items: Item[] = [...bars];
  for (const entry of unplaced) {
    if (entry.deadline === null) continue;
    const start = entry.latestSafeStart ?? entry.deadline;
    items.push({
      entry,
      start,
      end: entry.deadline,
      tone: entry.standing.is === "leftAlone" ? "alone" : "unplaced",
    });
  }
  return items.sort((one, other) => Date.parse(one.start) - Date.parse(other.start));
}

/** Every lane, and one for bars whose policy has none. */
function lanesOf(known: Lane[], items: Item[]): Lane[] {
  const lanes = [...known];
  for (const { entry } of items) {
    if (lanes.some((lane) => lane.policy === entry.policy)) continue;
    lanes.push({
      policy: entry.policy,
      machines: 0,
      paused: null,
      faults: [],
      anyHour: false,
      windows: [],
      freezes: [],
    });
  }
  return lanes;
}

function touches(scale: Scale, start: string, end: string): boolean {
  return Date.parse(start) < scale.to && Date.parse(end) >= scale.from;
}

function bands<T extends { start: string; end: string }>(
  scale: Scale,
  items: T[],
  title: (item: T) => string,
): Band[] {
  return items
    .filter((item) => touches(scale, item.start, item.end))
    .map((item) => {
      const x = toX(scale, Date.parse(item.start));
      return { x, width: Math.max(2, toX(scale, Date.parse(item.end)) - x), title: title(item) };
    });
}

const GAP = 6;
const LABEL_GAP = 5;
/** How wide the flag of a deadline is. */
const FLAG = 8;

/** First row with room, in the order of the bars: what begins first stands highest. */
function pack(
  items: Item[],
  scale: Scale,
  labelOf: (entry: PlanEntry) => string,
  labelWidth: (label: string) => number,
): { placed: PlacedBar[]; rows: number; left: number } {
  const ends: number[] = [];
  const placed: PlacedBar[] = [];
  let left = 0;
  // The way to its deadline is a bar's own, as long as there is room for everybody's.
  const isRoomy = items.length <= MOST_ROWS;
  for (const item of items) {
    const { entry } = item;
    const label = labelOf(entry);
    const wide = labelWidth(label) + LABEL_GAP;
    const begin = toX(scale, Date.parse(item.start));
    const width = Math.max(LEAST_BAR, toX(scale, Date.parse(item.end)) - begin);
    // What has no time stands in front of its deadline's flag, not upon it.
    const hasTime = item.tone !== "unplaced" && item.tone !== "alone";
    const wanted = hasTime ? begin : toX(scale, Date.parse(item.end)) - width - FLAG;
    const x = Math.max(0, Math.min(wanted, scale.width - width));
    const right = x + width + (hasTime ? 0 : FLAG);
    const onTheRight = right + wide <= scale.width;
    const [from, to] = onTheRight ? [x, right + wide] : [x - wide, right];
    const deadline = entry.deadline === null ? undefined : Date.parse(entry.deadline);
    const isShown = deadline !== undefined && deadline >= scale.from && deadline <= scale.to;
    const deadlineX = isShown && isRoomy ? toX(scale, deadline) : undefined;
    let row = ends.findIndex((end) => end + GAP <= from);
    if (row < 0) {
      if (ends.length >= MOST_ROWS) {
        left += 1;
        continue;
      }
      row = ends.push(0) - 1;
    }
    ends[row] = Math.max(to, deadlineX ?? 0);
    placed.push({
      item,
      x,
      width,
      y: row * ROW,
      label,
      labelX: onTheRight ? right + LABEL_GAP : x - LABEL_GAP,
      labelAnchor: onTheRight ? "start" : "end",
      deadlineX,
    });
  }
  return { placed, rows: ends.length, left };
}

/** The days of the reader's own calendar; one of them may have 23 or 25 hours. */
function days(scale: Scale): DayMark[] {
  const marks: DayMark[] = [];
  const first = new Date(scale.from);
  first.setHours(0, 0, 0, 0);
  for (let day = first; day.getTime() < scale.to; ) {
    const next = new Date(day);
    next.setDate(next.getDate() + 1);
    const x = toX(scale, day.getTime());
    marks.push({
      x,
      width: toX(scale, next.getTime()) - x,
      time: day.getTime(),
      isWeekend: day.getDay() === 0 || day.getDay() === 6,
    });
    day = next;
  }
  return marks;
}

/** From the beginning of today, so that a day's column is whole. */
export function shownFrom(now: number): number {
  const day = new Date(now);
  day.setHours(0, 0, 0, 0);
  return day.getTime();
}

export function shownTo(from: number, dayCount: number): number {
  // Through noon, so that a change of the clock does not move the last day.
  const end = new Date(from + dayCount * DAY + DAY / 2);
  end.setHours(0, 0, 0, 0);
  return end.getTime();
}
