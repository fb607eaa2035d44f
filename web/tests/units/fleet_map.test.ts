import assert from "node:assert/strict";
import { test } from "node:test";
import type { FleetMap, MachineRow, MachineState } from "../../src/api.ts";
import { applyChange, readMap } from "../../src/fleet_map.ts";

const MAP: FleetMap = {
  version: "a-1",
  asOf: "2026-11-02T10:00:00Z",
  total: 4,
  pools: ["worker-b", "worker-a", null],
  zones: ["b", "a"],
  states: ["well", "down"],
  machines: [
    ["worker-b-1", 0, 0, 0],
    ["worker-a-2", 1, 1, 1],
    ["worker-a-1", 1, 1, 0],
    ["master-0", 2, 1, 0],
  ],
};
const row = (name: string, pool: string | null, zone: string | null, state: MachineState) =>
  ({ name, pool, zone, state }) as MachineRow;
const shape = (model: ReturnType<typeof readMap>) =>
  model.zones.map((zone) => [
    zone.name,
    zone.groups.map((group) => [group.pool, group.cells.map((cell) => `${cell.name} ${cell.state}`)]),
  ]);

test("zones and pools stand by name, machines in no pool last", () => {
  assert.deepEqual(shape(readMap(MAP)), [
    [
      "a",
      [
        ["worker-a", ["worker-a-1 well", "worker-a-2 down"]],
        [null, ["master-0 well"]],
      ],
    ],
    ["b", [["worker-b", ["worker-b-1 well"]]]],
  ]);
});

test("a change touches only the groups that it changes", () => {
  const before = readMap(MAP);
  const after = applyChange(
    before,
    [row("worker-a-1", "worker-a", "a", "down"), row("worker-b-1", "worker-b", "b", "well")],
    [],
  );
  assert.equal(after.zones[0]?.groups[0]?.cells[0]?.state, "down");
  assert.notEqual(after.zones[0]?.groups[0], before.zones[0]?.groups[0]);
  assert.equal(after.zones[0]?.groups[1], before.zones[0]?.groups[1]);
  assert.equal(after.zones[1]?.groups[0], before.zones[1]?.groups[0]);
});

test("machines come, go and move; a zone without machines is gone", () => {
  const changed = [row("worker-a-3", "worker-a", "a", "starting"), row("master-0", null, null, "well")];
  const after = applyChange(readMap(MAP), changed, ["worker-b-1", "never-there"]);
  assert.equal(after.total, 4);
  assert.deepEqual(shape(after), [
    ["a", [["worker-a", ["worker-a-1 well", "worker-a-2 down", "worker-a-3 starting"]]]],
    [null, [[null, ["master-0 well"]]]],
  ]);
});
