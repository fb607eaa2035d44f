// Is the fleet well? Counts, what needs a person, and every machine on a map or in a table.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Pauses } from "../actions.tsx";
import type { FleetView, MachineRow, MachineState } from "../api.ts";
import { type Filter, isFiltered, NO_FILTER, NONE, readFilter, toggled, writeFilter } from "../filter.ts";
import { useLive } from "../live.tsx";
import { machinePath } from "../route.ts";
import { Mark, Moment, Said, StateName, Term } from "../ui.tsx";
import { FleetMapView } from "./fleet_map.tsx";
import { FleetTable } from "./fleet_table.tsx";

export function FleetPage({ fleet, query }: { fleet: FleetView; query: string }) {
  const { go } = useLive();
  const filter = useMemo(() => readFilter(query), [query]);
  const isTable = new URLSearchParams(query).get("as") === "table";

  const show = (next: Filter, asTable = isTable) => {
    const parameters = writeFilter(next);
    if (asTable) parameters.set("as", "table");
    const text = parameters.toString();
    go(text === "" ? "/" : `/?${text}`);
  };

  return (
    <>
      <h1 class="headline">
        <Said text={fleet.headline} />
      </h1>
      <Banners fleet={fleet} />
      <Counters fleet={fleet} filter={filter} show={show} />
      <div class="fleet">
        <Attention fleet={fleet} />
        <section class="machines" aria-labelledby="machines">
          <div class="section-head">
            <h2 id="machines">
              <Term of="machine">Machines</Term>
            </h2>
            <fieldset class="switch">
              <legend class="unseen">Show the machines as</legend>
              <button type="button" aria-pressed={!isTable} onClick={() => show(filter, false)}>
                Map
              </button>
              <button type="button" aria-pressed={isTable} onClick={() => show(filter, true)}>
                Table
              </button>
            </fieldset>
          </div>
          <FilterBar fleet={fleet} filter={filter} show={show} />
          {isTable ? (
            <FleetTable filter={filter} />
          ) : (
            <FleetMapView
              filter={filter}
              fleet={fleet}
              onPool={(pool) => show({ ...filter, pools: [pool ?? NONE] })}
            />
          )}
        </section>
      </div>
    </>
  );
}

function Banners({ fleet }: { fleet: FleetView }) {
  return (
    <>
      <Pauses pauses={fleet.pauses} onDone={() => {}} />
      {fleet.notes.map((note) => (
        <p class={note.severity === "Warning" ? "box is-bad" : "box"} key={note.reason + note.about}>
          <strong>{note.about}:</strong> <Said text={note.message} />
        </p>
      ))}
    </>
  );
}

function Counters(properties: { fleet: FleetView; filter: Filter; show: (filter: Filter) => void }) {
  const { fleet, filter, show } = properties;
  const { maintenance } = fleet;
  return (
    <div class="counters">
      <div>
        <h2>Machines by state</h2>
        <fieldset class="tiles">
          <legend class="unseen">Show only machines in these states</legend>
          {fleet.states.map(({ word: state, title, explanation }) => (
            <button
              type="button"
              key={state}
              class={`tile is-${state}-text ${fleet.counts.byState[state] ? "" : "is-none"}`}
              aria-pressed={filter.states.includes(state)}
              data-tip={`${explanation}\nPress to see only these.`}
              onClick={() => show({ ...filter, states: toggled<MachineState>(filter.states, state) })}
            >
              <span class="number">{(fleet.counts.byState[state] ?? 0).toLocaleString("en")}</span>
              <span class="of">
                <Mark state={state} /> {title}
              </span>
            </button>
          ))}
        </fieldset>
      </div>
      <div>
        <h2>
          <Term of="maintenance">Maintenance</Term> and <Term of="drift" />
        </h2>
        <ul class="tiles">
          <Tile to="/plan" number={maintenance.underWay} word="under way" />
          <Tile to="/plan" number={maintenance.due + maintenance.planned} word="planned" />
          <Tile
            to="/plan?only=needsApproval"
            number={maintenance.needApproval}
            word="to approve"
            tone="noted"
          />
          <Tile to="/plan?only=late" number={maintenance.late} word="late" tone="bad" />
          <Tile to="/plan?only=blocked" number={maintenance.blocked} word="blocked" tone="bad" />
          <Tile to="/drift" number={fleet.drift} word="drifted" tone="bad" />
        </ul>
      </div>
    </div>
  );
}

function Tile({ to, number, word, tone = "" }: { to: string; number: number; word: string; tone?: string }) {
  return (
    <li>
      <a class={`tile ${number === 0 ? "is-none" : tone}`} href={to}>
        <span class="number">{number.toLocaleString("en")}</span> <span class="of">{word}</span>
      </a>
    </li>
  );
}

function Attention({ fleet }: { fleet: FleetView }) {
  const hidden = fleet.attentionTotal - fleet.attention.length;
  return (
    <section class="attention" aria-labelledby="attention">
      <h2 id="attention">What needs a person</h2>
      {fleet.attention.length === 0 ? (
        <p class="box is-good">Nothing. Every machine does its work, or is on its way.</p>
      ) : (
        <ul class="cards">
          {fleet.attention.map((row) => (
            <li key={row.name}>
              <AttentionCard row={row} />
            </li>
          ))}
        </ul>
      )}
      {hidden > 0 && (
        <p>
          <a href="/?as=table&attention=true">And {hidden.toLocaleString("en")} more</a>
        </p>
      )}
    </section>
  );
}

function AttentionCard({ row }: { row: MachineRow }) {
  return (
    <div class={`card is-${row.state}-edge`}>
      <div class="card-head">
        <a href={machinePath(row.name)}>{row.name}</a>
        <StateName state={row.state} />
      </div>
      {row.waiting && (
        <p>
          <Said text={row.waiting.message} />
          {row.waiting.since && (
            <span class="faint">
              {" · "}
              <Moment at={row.waiting.since} relative />
            </span>
          )}
        </p>
      )}
      {row.drift && !row.waiting && <p>It {row.drift}.</p>}
      <p class="faint">{[row.pool, row.zone, row.instance?.id].filter(Boolean).join(" · ")}</p>
    </div>
  );
}

/** How long typing must rest before the operator is asked. */
const TYPING = 200;

function FilterBar(properties: { fleet: FleetView; filter: Filter; show: (filter: Filter) => void }) {
  const { fleet, filter, show } = properties;
  const [search, setSearch] = useState(filter.search);
  useEffect(() => setSearch(filter.search), [filter.search]);
  // only what is typed starts the wait
  useEffect(() => {
    if (search === filter.search) return;
    const timer = setTimeout(() => show({ ...filter, search }), TYPING);
    return () => clearTimeout(timer);
  }, [search]);

  const zones = fleet.zones.map((zone) => zone.name);
  return (
    <search class="filter">
      <label class="grow">
        <span class="unseen">Search machines by name, node, instance, pool, zone or address</span>
        <input
          id="search"
          type="search"
          placeholder="Search ( / )"
          data-tip="Names, nodes, instances, pools, zones and addresses"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </label>
      <Choice
        label="Pool"
        all="All pools"
        value={filter.pools}
        options={[...fleet.pools.map((pool) => pool.name), ...(fleet.poolless.machines > 0 ? [NONE] : [])]}
        none="In no pool"
        onChoice={(pools) => show({ ...filter, pools })}
      />
      <Choice
        label="Zone"
        all="All zones"
        value={filter.zones}
        options={zones.map((zone) => zone ?? NONE)}
        none="In no zone"
        onChoice={(chosen) => show({ ...filter, zones: chosen })}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.attention}
          onChange={(event) => show({ ...filter, attention: event.currentTarget.checked })}
        />
        Only what needs attention
      </label>
      {isFiltered(filter) && (
        <button
          type="button"
          onClick={() => {
            setSearch("");
            show(NO_FILTER);
          }}
        >
          Show all
        </button>
      )}
    </search>
  );
}

function Choice(properties: {
  label: string;
  all: string;
  none: string;
  value: string[];
  options: string[];
  onChoice: (chosen: string[]) => void;
}) {
  const { label, all, none, value, options, onChoice } = properties;
  const shown = value.length === 0 ? "" : value.length === 1 ? value[0] : "several";
  return (
    <label>
      <span class="unseen">{label}</span>
      <select
        value={shown}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          if (chosen !== "several") onChoice(chosen === "" ? [] : [chosen]);
        }}
      >
        <option value="">{all}</option>
        {value.length > 1 && <option value="several">{value.length} chosen</option>}
        {options.map((option) => (
          <option key={option} value={option}>
            {option === NONE ? none : option}
          </option>
        ))}
      </select>
    </label>
  );
}
