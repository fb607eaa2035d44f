// What happens next, and what is stuck? The coming days as a calendar, what needs a person, and every entry.
import { useState } from "preact/hooks";
import { EntryActions, PauseButton, Pauses } from "../actions.tsx";
import type { CalendarView, FleetView, PlanEntry, PlanView, WhatIfAnswer } from "../api.ts";
import { shownFrom, shownTo } from "../calendar.ts";
import type { Word } from "../glossary.ts";
import { operatorNow, useLive, useNow, useResource } from "../live.tsx";
import { machinePath } from "../route.ts";
import { Failure, Loading, Moment, Said, Term } from "../ui.tsx";
import { Calendar } from "./calendar.tsx";
import { Trial, WhatIfForm } from "./what_if.tsx";

type Only = "late" | "blocked" | "needsApproval" | undefined;
const RANGES = [3, 7, 14, 28];

export function PlanPage({ fleet, query }: { fleet: FleetView; query: string }) {
  const { go } = useLive();
  const only = onlyOf(query);
  const [dayCount, setDayCount] = useState(window.innerWidth < 700 ? 3 : 14);
  const [isTrying, setTrying] = useState(false);
  const [trial, setTrial] = useState<WhatIfAnswer | undefined>();
  const from = shownFrom(useNow());
  const to = shownTo(from, dayCount);
  const calendar = useResource<CalendarView>(
    `/api/v1/calendar?from=${wire(from)}&to=${wire(to)}`,
    (change) => change.plan || change.policies,
  );
  const plan = useResource<PlanView>("/api/v1/plan", (change) => change.plan);
  const reload = () => {
    plan.reload();
    calendar.reload();
  };
  const lanes = calendar.data?.lanes ?? [];
  const places = [
    { place: "cluster" as const, name: null },
    ...lanes
      .filter((lane) => lane.policy !== null)
      .map((lane) => ({ place: "policy" as const, name: lane.policy })),
    ...fleet.pools.map((pool) => ({ place: "pool" as const, name: pool.name })),
  ];
  const entries = trial?.after.entries ?? plan.data?.entries;
  const shown = trial?.calendar ?? calendar.data;

  return (
    <>
      <div class="machine-head">
        <h1>Plan</h1>
        <Summary fleet={fleet} />
        <div class="actions">
          <PauseButton places={places} onDone={reload} />
          <button
            type="button"
            aria-expanded={isTrying}
            onClick={() => setTrying(!isTrying)}
            data-tip="Try a change; nothing is saved"
          >
            What if …
          </button>
        </div>
      </div>
      <Pauses pauses={fleet.pauses} onDone={reload} />
      {plan.data?.notes.map((note) => (
        <p class={note.severity === "Warning" ? "box is-bad" : "box"} key={note.reason + note.about}>
          <strong>{note.about}:</strong> <Said text={note.message} />
        </p>
      ))}
      {isTrying && <WhatIfForm onAnswer={setTrial} hasAnswer={trial !== undefined} />}
      {trial && <Trial trial={trial} onEnd={() => setTrial(undefined)} />}
      {plan.error && <Failure error={plan.error} what="the plan" />}
      {calendar.error && <Failure error={calendar.error} what="the calendar" />}
      <Stuck entries={entries} isTrial={trial !== undefined} onDone={reload} />
      <section class="calendar" aria-labelledby="calendar">
        <div class="section-head">
          <h2 id="calendar">{trial ? "The calendar, if it were so" : "The coming days"}</h2>
          <fieldset class="switch">
            <legend class="unseen">How many days are shown</legend>
            {RANGES.map((range) => (
              <button
                type="button"
                key={range}
                aria-pressed={range === dayCount}
                onClick={() => setDayCount(range)}
              >
                {range} days
              </button>
            ))}
          </fieldset>
        </div>
        {shown ? (
          <Calendar
            calendar={shown}
            before={trial && calendar.data ? calendar.data : undefined}
            from={from}
            to={to}
            now={operatorNow()}
          />
        ) : (
          !calendar.error && <Loading what="the calendar" />
        )}
      </section>
      <Entries
        entries={entries}
        only={only}
        isTrial={trial !== undefined}
        onOnly={(next) => go(next ? `/plan?only=${next}` : "/plan")}
        onDone={reload}
      />
    </>
  );
}

const wire = (time: number) => new Date(time).toISOString().replace(/\.\d+Z$/, "Z");

function onlyOf(query: string): Only {
  const only = new URLSearchParams(query).get("only");
  return only === "late" || only === "blocked" || only === "needsApproval" ? only : undefined;
}

const SELECTED: Record<Exclude<Only, undefined>, (entry: PlanEntry) => boolean> = {
  late: (entry) => entry.isLate,
  blocked: (entry) => entry.standing.is === "blocked",
  needsApproval: (entry) => entry.needsApproval,
};

function Summary({ fleet }: { fleet: FleetView }) {
  const { maintenance } = fleet;
  return (
    <span class="summary">
      {maintenance.underWay > 0 && (
        <span class="chip is-maintenance-chip">{maintenance.underWay} under way</span>
      )}
      {maintenance.late > 0 && <span class="chip is-bad">{maintenance.late} late</span>}
      {maintenance.blocked > 0 && <span class="chip is-bad">{maintenance.blocked} blocked</span>}
      {maintenance.needApproval > 0 && (
        <span class="chip is-noted">{maintenance.needApproval} to approve</span>
      )}
      <span class="faint">
        {maintenance.nextStart ? (
          <>
            the next begins <Moment at={maintenance.nextStart} /> (
            <Moment at={maintenance.nextStart} relative />)
          </>
        ) : (
          "nothing is to begin"
        )}
      </span>
    </span>
  );
}

const FIRST_STUCK = 6;

function Stuck(properties: { entries: PlanEntry[] | undefined; isTrial: boolean; onDone: () => void }) {
  const { entries, isTrial, onDone } = properties;
  const [showsAll, setShowsAll] = useState(false);
  const stuck = entries?.filter((entry) => entry.isStuck);
  return (
    <section aria-labelledby="stuck">
      <h2 id="stuck">What needs a person</h2>
      {!stuck && <Loading what="the plan" />}
      {stuck?.length === 0 && (
        <p class="box is-good">Nothing is late, blocked, stuck or waiting for an approval.</p>
      )}
      <ul class="cards wide" id="stuck-entries">
        {stuck?.slice(0, showsAll ? undefined : FIRST_STUCK).map((entry) => (
          <li
            key={entry.machine}
            class={`card ${entry.isLate || entry.standing.is === "blocked" ? "is-down-edge" : "is-attention-edge"}`}
          >
            <div class="card-head">
              <a href={machinePath(entry.machine)}>{entry.machine}</a>
              <Standing entry={entry} />
            </div>
            <Waits entry={entry} />
            {entry.deadline && (
              <p class="faint">
                <Term of="deadline" /> <Moment at={entry.deadline} /> (<Moment at={entry.deadline} relative />
                )
              </p>
            )}
            {!isTrial && <EntryActions entry={entry} onDone={onDone} />}
          </li>
        ))}
      </ul>
      {stuck && stuck.length > FIRST_STUCK && !showsAll && (
        <button type="button" onClick={() => setShowsAll(true)}>
          And {stuck.length - FIRST_STUCK} more
        </button>
      )}
    </section>
  );
}

const STANDINGS: Record<PlanEntry["standing"]["is"], { title: string; word?: Word }> = {
  underWay: { title: "under way", word: "underWay" },
  due: { title: "due", word: "due" },
  planned: { title: "planned" },
  movesEvent: { title: "moves the event", word: "event" },
  blocked: { title: "blocked", word: "blocked" },
  leftAlone: { title: "left alone", word: "leftAlone" },
};

function Standing({ entry }: { entry: PlanEntry }) {
  const { standing } = entry;
  const { title, word } = STANDINGS[standing.is];
  return (
    <span class="standing">
      {entry.isLate && (
        <span class="chip is-bad">
          <Term of="late">late</Term>
        </span>
      )}
      <span
        class={`chip ${standing.is === "blocked" ? "is-bad" : standing.is === "underWay" ? "is-maintenance-chip" : ""}`}
      >
        {word ? <Term of={word}>{title}</Term> : title}
        {standing.is === "underWay" && `: ${standing.phase}`}
      </span>
      {entry.needsApproval && (
        <span class="chip is-noted">
          <Term of="approval">to approve</Term>
        </span>
      )}
      {entry.approved && <span class="chip is-good">approved</span>}
      {entry.postponedUntil && (
        <span class="chip">
          postponed until <Moment at={entry.postponedUntil} />
        </span>
      )}
    </span>
  );
}

function Waits({ entry }: { entry: PlanEntry }) {
  const waits = [...entry.heldUpBy, ...entry.waitsOn];
  if (waits.length === 0) {
    return (
      <p>
        <Said text={entry.why} />
      </p>
    );
  }
  return (
    <ul class="waits">
      {waits.map((wait) => (
        <li key={wait.reason + wait.message}>
          <Said text={wait.message} />
        </li>
      ))}
    </ul>
  );
}

const FIRST = 100;

function Entries(properties: {
  entries: PlanEntry[] | undefined;
  only: Only;
  isTrial: boolean;
  onOnly: (only: Only) => void;
  onDone: () => void;
}) {
  const { entries, only, isTrial, onOnly, onDone } = properties;
  const [showsAll, setShowsAll] = useState(false);
  const chosen = only && entries ? entries.filter(SELECTED[only]) : entries;
  return (
    <section aria-labelledby="entries">
      <div class="section-head">
        <h2 id="entries">{isTrial ? "All entries, if it were so" : "All entries"}</h2>
        <label>
          <span class="unseen">Which entries are shown</span>
          <select
            value={only ?? ""}
            onChange={(event) => onOnly((event.currentTarget.value || undefined) as Only)}
          >
            <option value="">All</option>
            <option value="late">Late</option>
            <option value="blocked">Blocked</option>
            <option value="needsApproval">To approve</option>
          </select>
        </label>
        <span class="faint">{chosen?.length ?? 0} shown</span>
      </div>
      {chosen?.length === 0 && <p class="box is-good">{only ? "None." : "No machine needs maintenance."}</p>}
      {chosen && chosen.length > 0 && (
        <section class="scroll" tabIndex={0} aria-label="Entries of the plan">
          <table class="entries">
            <thead>
              <tr>
                <th scope="col">Machine</th>
                <th scope="col">Standing</th>
                <th scope="col">What</th>
                <th scope="col">Begins</th>
                <th scope="col">
                  <Term of="deadline">Deadline</Term>
                </th>
                <th scope="col">Because of, and why then</th>
                <th scope="col">
                  <span class="unseen">What you can do</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {chosen.slice(0, showsAll ? undefined : FIRST).map((entry) => (
                <tr
                  key={entry.machine}
                  class={entry.isLate || entry.standing.is === "blocked" ? "is-bad" : ""}
                >
                  <th scope="row">
                    <a href={machinePath(entry.machine)}>{entry.machine}</a>
                    <div class="faint">{[entry.pool, entry.zone].filter(Boolean).join(" · ")}</div>
                  </th>
                  <td>
                    <Standing entry={entry} />
                  </td>
                  <td>{entry.action}</td>
                  <td>
                    {entry.start ? <Moment at={entry.start} /> : "–"}
                    {entry.window && <div class="faint">{entry.window}</div>}
                  </td>
                  <td>{entry.deadline ? <Moment at={entry.deadline} /> : "–"}</td>
                  <td class="sentence">
                    <Said text={entry.because} />
                    <Waits entry={entry} />
                  </td>
                  <td>{!isTrial && <EntryActions entry={entry} onDone={onDone} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {chosen && chosen.length > FIRST && !showsAll && (
        <button type="button" onClick={() => setShowsAll(true)}>
          Show all {chosen.length}
        </button>
      )}
    </section>
  );
}
