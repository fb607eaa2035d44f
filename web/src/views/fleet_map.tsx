// Where is what wrong? Every machine a square: zones side by side, pools within, worst states loudest.
//
// A square is a link and nothing else, its sign is drawn by the style sheet, and a group is drawn anew only when
// something in it changed: so thousands stay quick. One square of the map is in the tab order; arrows go on from it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { FleetMap, FleetView, PoolView } from "../api.ts";
import { type Filter, isFiltered, writeFilter } from "../filter.ts";
import { applyChange, type Group, type MapModel, readMap, type Zone } from "../fleet_map.ts";
import { useLive, useResource } from "../live.tsx";
import { machinePath } from "../route.ts";
import { titleOf } from "../states.ts";
import { Failure, Loading, Said, Term } from "../ui.tsx";

export function FleetMapView(properties: {
  filter: Filter;
  fleet: FleetView;
  onPool: (pool: string | null) => void;
}) {
  const { filter, fleet, onPool } = properties;
  const isWhole = !isFiltered(filter);
  const { listen } = useLive();
  // Which machines match is the operator's to say: with a filter, a change is a reason to ask again.
  const { data, error } = useResource<FleetMap>(
    `/api/v1/map?${writeFilter(filter)}`,
    (change) => !isWhole && change.machines !== null,
  );
  const [model, setModel] = useState<MapModel | undefined>();
  useEffect(() => {
    if (data) setModel(readMap(data));
  }, [data]);
  useEffect(() => {
    if (!isWhole) return;
    return listen((news) => {
      if (news.kind !== "change" || !news.change.machines) return;
      const { changed, removed } = news.change.machines;
      setModel((before) => before && applyChange(before, changed, removed));
    });
  }, [listen, isWhole]);
  const pools = useMemo(() => new Map(fleet.pools.map((pool) => [pool.name, pool])), [fleet.pools]);

  if (!model) return error ? <Failure error={error} what="the map" /> : <Loading what="the map" />;
  const size = model.total > 1_500 ? "small" : model.total > 300 ? "middle" : "large";
  return (
    <>
      {error && <Failure error={error} what="the map" />}
      <Shown total={model.total} isWhole={isWhole} />
      {model.total === 0 && <p class="box">No machine matches.</p>}
      <Roving>
        <div class={`map is-${size}`}>
          {model.zones.map((zone) => (
            <ZoneView
              key={String(zone.name)}
              zone={zone}
              pools={pools}
              isLong={size !== "large"}
              onPool={onPool}
            />
          ))}
        </div>
      </Roving>
    </>
  );
}

function Shown({ total, isWhole }: { total: number; isWhole: boolean }) {
  return (
    <p class="legend" id="shown">
      {total.toLocaleString("en")} {total === 1 ? "machine" : "machines"}
      {isWhole ? "" : total === 1 ? " matches" : " match"}
    </p>
  );
}

function ZoneView(properties: {
  zone: Zone;
  pools: Map<string, PoolView>;
  /** More than a screen holds: pools with trouble stand first, so that nobody has to scroll to them. */
  isLong: boolean;
  onPool: (pool: string | null) => void;
}) {
  const { zone, pools, isLong, onPool } = properties;
  const groups = isLong
    ? zone.groups.toSorted((one, other) => Number(hasTrouble(other)) - Number(hasTrouble(one)))
    : zone.groups;
  return (
    <section class="zone" aria-label={zone.name === null ? "In no zone" : `Zone ${zone.name}`}>
      <h3>
        {zone.name === null ? "In no zone" : <Term of="zone">{zone.name}</Term>}{" "}
        <span class="faint">{zone.total}</span>
      </h3>
      {groups.map((group) => (
        <GroupView
          key={group.key}
          group={group}
          pool={group.pool === null ? undefined : pools.get(group.pool)}
          onPool={onPool}
        />
      ))}
    </section>
  );
}

function hasTrouble(group: Group): boolean {
  return group.cells.some((cell) => cell.state === "down" || cell.state === "attention");
}

function GroupView(properties: {
  group: Group;
  pool: PoolView | undefined;
  onPool: (pool: string | null) => void;
}) {
  const { group, pool, onPool } = properties;
  const isShort = pool !== undefined && pool.ready < pool.desired;
  return (
    <div class="pool">
      <div class="pool-head">
        <button type="button" class="link" data-tip="See only this pool" onClick={() => onPool(group.pool)}>
          {group.pool ?? "in no pool"}
        </button>
        {pool && (
          <span class={isShort ? "is-down-text" : "faint"}>
            {pool.ready} of {pool.desired} ready
          </span>
        )}
        {pool?.paused && <span class="chip">paused</span>}
      </div>
      {pool?.waiting && (
        <p class="faint">
          <Said text={pool.waiting.message} />
        </p>
      )}
      <Squares group={group} />
    </div>
  );
}

function Squares({ group }: { group: Group }) {
  // The same element as before is not compared with itself: a change elsewhere costs this group nothing.
  return useMemo(
    () => (
      <div class="squares" role="group" aria-label={`Machines of ${group.pool ?? "no pool"}`}>
        {group.cells.map(({ name, state }) => (
          <a
            key={name}
            href={machinePath(name)}
            class={`square is-${state}`}
            tabIndex={-1}
            aria-label={`${name}: ${titleOf(state)}`}
            data-tip={`${name}\n${titleOf(state)}`}
          />
        ))}
      </div>
    ),
    [group],
  );
}

/** Arrow keys among the squares. The tab order holds one of them: the last that was visited, or the first. */
function Roving({ children }: { children: preact.ComponentChildren }) {
  const home = useRef<HTMLDivElement>(null);
  const current = useRef<string | undefined>(undefined);

  // After every drawing: the squares may be others.
  useEffect(() => {
    const squares = home.current?.querySelectorAll<HTMLAnchorElement>(".square");
    if (!squares || squares.length === 0) return;
    const kept =
      current.current === undefined
        ? undefined
        : [...squares].find((one) => one.getAttribute("href") === current.current);
    for (const one of home.current?.querySelectorAll<HTMLAnchorElement>('.square[tabindex="0"]') ?? [])
      one.tabIndex = -1;
    const stop = kept ?? squares[0];
    if (stop) stop.tabIndex = 0;
  });

  const visit = (square: HTMLAnchorElement) => {
    for (const one of home.current?.querySelectorAll<HTMLAnchorElement>('.square[tabindex="0"]') ?? [])
      one.tabIndex = -1;
    square.tabIndex = 0;
    current.current = square.getAttribute("href") ?? undefined;
    square.focus();
  };

  const press = (event: KeyboardEvent) => {
    const from = event.target;
    if (!(from instanceof HTMLAnchorElement) || !from.classList.contains("square")) return;
    const squares = [...(home.current?.querySelectorAll<HTMLAnchorElement>(".square") ?? [])];
    const next = target(event.key, squares, squares.indexOf(from));
    if (!next) return;
    event.preventDefault();
    visit(next);
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the squares inside have the focus; this only hears their keys
    <div ref={home} onKeyDown={press}>
      {children}
    </div>
  );
}

function target(key: string, squares: HTMLAnchorElement[], at: number): HTMLAnchorElement | undefined {
  if (key === "ArrowRight") return squares[at + 1];
  if (key === "ArrowLeft") return squares[at - 1];
  if (key === "Home") return squares[0];
  if (key === "End") return squares.at(-1);
  if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
  const here = squares[at]?.getBoundingClientRect();
  if (!here) return undefined;
  const isDown = key === "ArrowDown";
  let best: { square: HTMLAnchorElement; cost: number } | undefined;
  for (const square of squares) {
    const box = square.getBoundingClientRect();
    const along = isDown ? box.top - here.top : here.top - box.top;
    const aside = Math.abs(box.left - here.left);
    // The next row first; within it the nearest column. A row of another zone beside this one does not count.
    if (along < here.height / 2 || aside > 200) continue;
    const cost = along * 1_000 + aside;
    if (!best || cost < best.cost) best = { square, cost };
  }
  return best?.square;
}
