// What does the calendar look like? A lane for each policy: windows, freezes, bars with their deadlines, and now.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Bar, CalendarView } from "../api.ts";
import { BAR, HEAD, type Layout, layOut, type PlacedBar, ROW, toX } from "../calendar.ts";
import { machinePath } from "../route.ts";
import { moment, splitTimes } from "../time.ts";
import { Term } from "../ui.tsx";

interface Properties {
  calendar: CalendarView;
  /** The real one, behind a trial: what moves away is shown as a ghost. */
  before: CalendarView | undefined;
  from: number;
  to: number;
  now: number;
}

/** About as wide as the style sheet draws a letter. */
const LETTER = 6.3;
/** The size of the page's letters for which the drawing is made. */
const LETTERS_AT = 14;

export function Calendar({ calendar, before, from, to, now }: Properties) {
  const home = useRef<HTMLDivElement>(null);
  const width = useWidth(home);
  // On a large screen the page's letters are larger; the drawing grows with them.
  const zoom = useMemo(
    () => Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / LETTERS_AT,
    [width],
  );
  const scale = useMemo(() => ({ from, to, width: Math.max(width, 280) / zoom }), [from, to, width, zoom]);
  const layout = useMemo(
    () =>
      layOut({
        calendar,
        scale,
        now,
        labelOf: (entry) => entry.machine,
        labelWidth: (label) => label.length * LETTER,
      }),
    [calendar, scale, now],
  );
  const ghosts = useMemo(() => ghostsOf(before, calendar), [before, calendar]);
  const left = layout.lanes.reduce((sum, lane) => sum + lane.left, 0);
  return (
    <div ref={home}>
      {width > 0 && (
        <svg
          class="calendar-drawing"
          role="group"
          aria-label={`Calendar with ${calendar.bars.length} maintenances; the list below says the same`}
          width={layout.width * zoom}
          height={layout.height * zoom}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
        >
          <defs>
            <pattern
              id="hatch"
              width="6"
              height="6"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <line class="hatch" x1="0" y1="0" x2="0" y2="6" />
            </pattern>
          </defs>
          <Days layout={layout} />
          {layout.lanes.map((placed) => (
            <g key={String(placed.lane.policy)}>
              <rect class="lane" x="0" y={placed.y} width={layout.width} height={placed.height} />
              {placed.windows.map((band) => (
                <rect
                  key={band.x}
                  class={placed.lane.anyHour ? "window is-any" : "window"}
                  x={band.x}
                  y={placed.y}
                  width={band.width}
                  height={placed.height}
                  data-tip={placed.lane.anyHour ? undefined : `Window ${band.title}`}
                />
              ))}
              {placed.freezes.map((band) => (
                <rect
                  key={band.x}
                  class="freeze"
                  x={band.x}
                  y={placed.y}
                  width={band.width}
                  height={placed.height}
                  data-tip={`Freeze ${band.title}`}
                />
              ))}
              <text class="lane-name" x="6" y={placed.y + 15}>
                {placed.lane.policy ?? "no policy"} · {placed.lane.machines}{" "}
                {placed.lane.machines === 1 ? "machine" : "machines"}
                {placed.lane.paused ? " · paused" : ""}
                {placed.lane.faults.length > 0 ? " · has faults" : ""}
              </text>
              {ghosts
                .filter((ghost) => ghost.entry.policy === placed.lane.policy)
                .map((ghost) => {
                  const x = toX(scale, Date.parse(ghost.start));
                  return (
                    <rect
                      key={ghost.entry.machine}
                      class="ghost"
                      x={x}
                      y={placed.y + 4}
                      width={10}
                      height={BAR}
                      data-tip={`${ghost.entry.machine}: as the plan is now`}
                    />
                  );
                })}
              {placed.bars.map((bar) => (
                <BarView key={bar.item.entry.machine + bar.item.start} placed={bar} now={now} />
              ))}
            </g>
          ))}
          {layout.lanes.length === 0 && (
            <text class="lane-name" x="6" y={HEAD + 20}>
              No policy has windows, and nothing is planned.
            </text>
          )}
          {layout.nowX !== undefined && (
            <g>
              <line class="now" x1={layout.nowX} x2={layout.nowX} y1={HEAD - 8} y2={layout.height} />
              <text class="now-name" x={layout.nowX + 3} y={HEAD - 4}>
                now
              </text>
            </g>
          )}
        </svg>
      )}
      <p class="legend">
        <span class="key">
          <span class="swatch is-window" aria-hidden="true" /> <Term of="window" />
        </span>
        <span class="key">
          <span class="swatch is-freeze" aria-hidden="true" /> <Term of="freeze" />
        </span>
        <span class="key">
          <span class="swatch is-planned" aria-hidden="true" /> planned
        </span>
        <span class="key">
          <span class="swatch is-running" aria-hidden="true" /> <Term of="underWay">under way</Term>
        </span>
        <span class="key">
          <span class="swatch is-late" aria-hidden="true" /> <Term of="late">late</Term>
        </span>
        <span class="key">
          <span class="swatch is-unplaced" aria-hidden="true" /> <Term of="blocked">no time found</Term>
        </span>
        <span class="key">
          <span class="swatch is-waiting" aria-hidden="true" /> <Term of="approval">to approve</Term>
        </span>
        <span class="key">
          <span class="swatch is-deadline" aria-hidden="true" /> <Term of="deadline" />
        </span>
      </p>
      {left > 0 && <p class="faint">{left} more have no room in the drawing; all are in the list below.</p>}
    </div>
  );
}

function Days({ layout }: { layout: Layout }) {
  const names = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
  const isNarrow = (layout.days[0]?.width ?? 0) < 34 && layout.days.length > 8;
  return (
    <g aria-hidden="true">
      {layout.days.map((day, index) => {
        const date = new Date(day.time);
        return (
          <g key={day.time}>
            {day.isWeekend && (
              <rect class="weekend" x={day.x} y={HEAD} width={day.width} height={layout.height - HEAD} />
            )}
            <line class="day" x1={day.x} x2={day.x} y1={HEAD - 6} y2={layout.height} />
            {(!isNarrow || index % 2 === 0) && (
              <>
                <text class="day-name" x={day.x + 3} y={12}>
                  {names.format(date)}
                </text>
                <text class="day-number" x={day.x + 3} y={25}>
                  {date.getDate()}
                  {index === 0 || date.getDate() === 1
                    ? ` ${date.toLocaleString("en-GB", { month: "short" })}`
                    : ""}
                </text>
              </>
            )}
          </g>
        );
      })}
    </g>
  );
}

function BarView({ placed, now }: { placed: PlacedBar; now: number }) {
  const { item, x, width, y } = placed;
  const { entry, tone } = item;
  const top = y + (ROW - BAR) / 2;
  const middle = top + BAR / 2;
  const tip = sayPlain(entry.sentence, now);
  const waits = entry.needsApproval && tone === "planned" ? " is-waiting" : "";
  return (
    <a class={`bar is-${tone}${waits}`} href={machinePath(entry.machine)} aria-label={tip} data-tip={tip}>
      {placed.deadlineX !== undefined && placed.deadlineX > x + width && (
        <line class="until" x1={x + width} x2={placed.deadlineX} y1={middle} y2={middle} />
      )}
      <rect class="hit" x={Math.max(0, x - 6)} y={y} width={Math.max(24, width + 12)} height={ROW} />
      <rect class="body" x={x} y={top} width={width} height={BAR} rx="2" />
      {(tone === "late" || tone === "unplaced") && (
        <text class="sign" x={x + width / 2} y={middle + 4} text-anchor="middle">
          !
        </text>
      )}
      {entry.needsApproval && tone === "planned" && (
        <text class="sign" x={x + width / 2} y={middle + 4} text-anchor="middle">
          ?
        </text>
      )}
      <text class="label" x={placed.labelX} y={middle + 4} text-anchor={placed.labelAnchor}>
        {placed.label}
      </text>
      {placed.deadlineX !== undefined && (
        <path
          class="deadline"
          d={`M ${placed.deadlineX} ${y + 2} V ${y + ROW - 2} M ${placed.deadlineX} ${y + 2} l -6 4 l 6 4 z`}
        />
      )}
    </a>
  );
}

/** A sentence for where only text can be: its moments in the reader's zone. */
export function sayPlain(sentence: string, now: number): string {
  return splitTimes(sentence)
    .map((part) => (part.isTime ? `${moment(part.text, now)}` : part.text))
    .join("");
}

/** Bars of the real calendar that a trial moves or removes. */
function ghostsOf(before: CalendarView | undefined, after: CalendarView): Bar[] {
  if (!before) return [];
  const kept = new Set(after.bars.map((bar) => `${bar.entry.machine} ${bar.start}`));
  return before.bars.filter((bar) => !kept.has(`${bar.entry.machine} ${bar.start}`));
}

function useWidth(of: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = of.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    setWidth(Math.floor(element.clientWidth));
    return () => observer.disconnect();
  }, [of]);
  return width;
}
