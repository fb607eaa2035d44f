// Which square stands where on the map? Zones, pools within them, machines by name; changes touch only their group.
import type { FleetMap, MachineRow, MachineState } from "./api.ts";

export interface Cell {
  name: string;
  pool: string | null;
  zone: string | null;
  state: MachineState;
}

/** The machines of one pool in one zone. Replaced, never changed, so that what is drawn knows what to draw anew. */
export interface Group {
  key: string;
  pool: string | null;
  zone: string | null;
  cells: Cell[];
}

export interface Zone {
  name: string | null;
  total: number;
  groups: Group[];
}

export interface MapModel {
  total: number;
  zones: Zone[];
}

export function readMap(map: FleetMap): MapModel {
  const cells: Cell[] = [];
  for (const [name, pool, zone, state] of map.machines) {
    const word = map.states[state];
    if (word === undefined) continue;
    cells.push({ name, pool: map.pools[pool] ?? null, zone: map.zones[zone] ?? null, state: word });
  }
  return grouped(cells, new Map());
}

/** The model after a change of the stream; groups that nothing touched stay the same objects. */
export function applyChange(model: MapModel, changed: MachineRow[], removed: string[]): MapModel {
  const cells = new Map<string, Cell>();
  const groups = new Map<string, Group>();
  for (const zone of model.zones) {
    for (const group of zone.groups) {
      groups.set(group.key, group);
      for (const cell of group.cells) cells.set(cell.name, cell);
    }
  }
  for (const name of removed) cells.delete(name);
  for (const { name, pool, zone, state } of changed) {
    const before = cells.get(name);
    if (before && before.pool === pool && before.zone === zone && before.state === state) continue;
    cells.set(name, { name, pool, zone, state });
  }
  return grouped([...cells.values()], groups);
}

function grouped(cells: Cell[], before: Map<string, Group>): MapModel {
  const found = new Map<string, Group>();
  for (const cell of cells) {
    const key = JSON.stringify([cell.zone, cell.pool]);
    const group = found.get(key);
    if (group) group.cells.push(cell);
    else found.set(key, { key, pool: cell.pool, zone: cell.zone, cells: [cell] });
  }
  const zones = new Map<string | null, Zone>();
  for (const group of found.values()) {
    group.cells.sort((one, other) => byName(one.name, other.name));
    const old = before.get(group.key);
    const kept = old && isSame(old.cells, group.cells) ? old : group;
    const zone = zones.get(group.zone) ?? { name: group.zone, total: 0, groups: [] };
    zone.groups.push(kept);
    zone.total += kept.cells.length;
    zones.set(group.zone, zone);
  }
  const all = [...zones.values()].sort((one, other) => nullLast(one.name, other.name));
  for (const zone of all) zone.groups.sort((one, other) => nullLast(one.pool, other.pool));
  return { total: cells.length, zones: all };
}

function isSame(one: Cell[], other: Cell[]): boolean {
  return one.length === other.length && one.every((cell, index) => cell === other[index]);
}

// Names of Kubernetes objects are ASCII; comparing by locale is twenty times slower and 5,000 names are many.
function byName(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function nullLast(one: string | null, other: string | null): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
  return byName(one, other);
}
