// What does the stand-in answer to each question? The shapes of /api/v1, out of the stand-in's fleet.
import { at, everyNight, lanes, NOW, POLICIES, STATES } from "./world.mjs";

const WORST = ["down", "attention", "maintenance", "starting", "leaving", "well"];

function counts(rows) {
  const byState = Object.fromEntries(WORST.map((state) => [state, 0]));
  for (const row of rows) byState[row.state] += 1;
  return { machines: rows.length, byState };
}

function by(rows, key) {
  const found = new Map();
  for (const row of rows) found.set(row[key], [...(found.get(row[key]) ?? []), row]);
  return [...found.entries()].sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
}

export function fleetView(world) {
  const { rows, plan, version } = world;
  const all = counts(rows);
  const trouble = rows
    .filter((row) => row.state === "down" || row.state === "attention")
    .sort((one, other) => WORST.indexOf(one.state) - WORST.indexOf(other.state));
  const standing = (is) => plan.filter((entry) => entry.standing.is === is).length;
  const down = all.byState.down;
  return {
    version,
    asOf: at(0),
    namespace: "openshift-machine-api",
    headline: `${all.byState.well} of ${rows.length} machines are well; ${down} ${down === 1 ? "is" : "are"} down; ${standing("underWay")} maintenance is under way, the next begins 2026-11-07T21:00:00Z`,
    counts: all,
    states: STATES,
    zones: by(rows, "zone").map(([name, some]) => ({ name, counts: counts(some) })),
    pools: by(
      rows.filter((row) => row.pool !== null),
      "pool",
    ).map(([name, some]) => pool(world, name, some)),
    poolless: counts(rows.filter((row) => row.pool === null)),
    attention: trouble.slice(0, 20),
    attentionTotal: trouble.length,
    maintenance: {
      underWay: standing("underWay"),
      due: standing("due"),
      planned: standing("planned"),
      blocked: standing("blocked"),
      late: plan.filter((entry) => entry.isLate).length,
      leftAlone: standing("leftAlone"),
      needApproval: plan.filter((entry) => entry.needsApproval).length,
      nextStart: "2026-11-07T21:00:00Z",
    },
    drift: rows.filter((row) => row.drift !== null).length,
    pauses: world.pauses,
    notes: [],
  };
}

function pool(world, name, rows) {
  const ready = rows.filter((row) => row.node?.state === "Ready").length;
  return {
    name,
    zone: rows[0].zone,
    role: "worker",
    instanceType: "m6i.xlarge",
    desired: rows.length,
    current: rows.length,
    ready,
    available: ready,
    counts: counts(rows),
    waiting: null,
    paused: world.pauses.find((pause) => pause.place === "pool" && pause.name === name)?.why ?? null,
  };
}

function matching(rows, query) {
  const search = (query.get("search") ?? "").toLowerCase();
  const [pools, zones, states] = ["pool", "zone", "state"].map((key) => query.getAll(key));
  const isIn = (list, value) => list.length === 0 || list.includes(value ?? "-");
  return rows.filter(
    (row) =>
      (search === "" ||
        [row.name, row.pool, row.zone, row.instance?.id, row.node?.name].some((text) =>
          text?.toLowerCase().includes(search),
        )) &&
      isIn(pools, row.pool) &&
      isIn(zones, row.zone) &&
      isIn(states, row.state) &&
      (query.get("attention") !== "true" || row.state === "down" || row.state === "attention"),
  );
}

export function fleetMap(world, query) {
  const rows = matching(world.rows, query);
  const pools = [...new Set(rows.map((row) => row.pool))];
  const zones = [...new Set(rows.map((row) => row.zone))];
  const machines = rows.map((row) => [
    row.name,
    pools.indexOf(row.pool),
    zones.indexOf(row.zone),
    WORST.indexOf(row.state),
  ]);
  return { version: world.version, asOf: at(0), total: rows.length, pools, zones, states: WORST, machines };
}

const SORTS = {
  name: (row) => row.name,
  state: (row) => `${WORST.indexOf(row.state)}${row.name}`,
  age: (row) => row.createdAt,
  pool: (row) => `${row.pool}/${row.name}`,
  zone: (row) => `${row.zone}/${row.name}`,
};

export function machineList(world, query) {
  const key = SORTS[query.get("sort") ?? "name"];
  const rows = matching(world.rows, query).sort((one, other) => (key(one) < key(other) ? -1 : 1));
  if (query.get("order") === "desc") rows.reverse();
  const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit") ?? 100)];
  const next = from + limit < rows.length ? String(from + limit) : null;
  return {
    version: world.version,
    asOf: at(0),
    total: rows.length,
    machines: rows.slice(from, from + limit),
    next,
  };
}

export function calendar(world, query, plan = world.plan, extraWindows = []) {
  const bars = plan
    .filter((entry) => entry.start !== null)
    .map((entry) => ({
      entry,
      start: entry.start,
      end: entry.end,
      tone: entry.standing.is === "underWay" ? "running" : entry.isLate ? "late" : "planned",
    }))
    .sort((one, other) => (one.start < other.start ? -1 : 1));
  return {
    version: world.version,
    asOf: at(0),
    from: query.get("from") ?? at(0),
    to: query.get("to") ?? at(14 * 86_400_000),
    lanes: lanes(world.rows.length - 3, extraWindows),
    bars,
    unplaced: plan.filter((entry) => entry.start === null),
    notes: [],
  };
}

export const planView = (world, plan = world.plan) => ({
  version: world.version,
  asOf: at(0),
  entries: plan,
  notes: [],
});
export const policyList = (world) => ({ version: world.version, asOf: at(0), policies: POLICIES });

/** With another window for the policy, what waited for Saturday is done tomorrow night; an event is one bar more. */
export function whatIf(world, question) {
  const windows = question.policies[0]?.spec.windows ?? [];
  if (windows.some((window) => window.cron === "nonsense")) return undefined;
  const isSooner = windows.some((window) => window.name === "tried");
  const [start, end] = [at(15 * 3_600_000), at(15 * 3_600_000 + 1_200_000)];
  const moved = world.plan.map((entry) =>
    isSooner && entry.standing.is !== "underWay" && entry.standing.is !== "leftAlone"
      ? {
          ...entry,
          standing: { is: "planned" },
          isLate: false,
          start,
          end,
          window: "tried",
          sentence: `${entry.machine} is done at ${start} in window tried`,
        }
      : entry,
  );
  const added = question.events.map((event) => ({
    ...world.plan[1],
    machine: event.machine,
    deadline: event.notBefore,
    needsApproval: true,
    sentence: `${event.machine} is replaced at ${world.plan[1].start} in window saturdays because of event ${event.code}`,
  }));
  const after = [...moved, ...added];
  const changes = [
    ...moved.flatMap((entry, index) => {
      const before = world.plan[index];
      const sentence = `it would begin at ${start} in window tried, and not ${before.start ? `at ${before.start}` : "too late"}`;
      return entry === before
        ? []
        : [{ machine: entry.machine, change: "earlier", before, after: entry, sentence }];
    }),
    ...added.map((entry) => ({
      machine: entry.machine,
      change: "added",
      before: null,
      after: entry,
      sentence: entry.sentence,
    })),
  ];
  const summary = `${changes.length} of ${after.length} entries change; ${after.filter((entry) => entry.isLate).length} would be late, now ${world.plan.filter((entry) => entry.isLate).length}`;
  return {
    asOf: at(0),
    calendar: calendar(world, new URLSearchParams(), after, isSooner ? everyNight() : []),
    before: planView(world),
    after: planView(world, after),
    changes,
    summary,
  };
}

export function driftView(world) {
  const entries = world.rows.filter((row) => row.drift !== null).map(driftEntry);
  return {
    version: world.version,
    asOf: at(0),
    entries,
    total: entries.length,
    past: past(world),
    hidden: null,
  };
}

/** What happened earlier this morning, to a machine that is well again. */
function past(world) {
  const row = world.rows.find((one) => one.pool === "worker-a" && one.state === "well");
  if (!row) return [];
  const minutes = (count) => at(-count * 60_000);
  const id = row.instance.id;
  return [
    {
      machine: row.name,
      pool: row.pool,
      zone: row.zone,
      instance: id,
      class: "StoppedByUser",
      words: "was stopped by a user",
      since: minutes(51),
      cause: "the cloud says: User initiated",
      response: "",
      attempts: 0,
      actedAt: null,
      failure: null,
      needsAPerson: false,
      done: [
        { at: minutes(46), words: "it is being started again" },
        { at: minutes(45), words: `instance ${id} runs again, as was decided` },
      ],
      isOver: true,
      overAt: minutes(45),
      sentence: `instance ${id} was stopped by a user; it runs again, as was decided`,
    },
  ];
}

/** What each kind of drift is called, and what is done about it. */
const DRIFTS = {
  "was stopped by a user": {
    class: "StoppedByUser",
    cause: "the cloud says: User initiated",
    needsAPerson: false,
    minutes: 3,
    response:
      "it is started at 2026-11-02T10:02:00Z, because the policy says Start after a grace period of 5m",
    attempts: 0,
    failure: null,
  },
  "was terminated by a user": {
    class: "TerminatedByUser",
    cause: "the cloud says: User initiated shutdown",
    needsAPerson: true,
    minutes: 9,
    response: "it is replaced: pool worker-c makes another machine",
    attempts: 2,
    failure: "the cloud has no capacity for m6i.xlarge in eu-west-1c",
  },
  "was rebooted, and nobody announced it": {
    class: "Rebooted",
    cause: "its boot id changed, and no maintenance was under way",
    needsAPerson: false,
    minutes: 61,
    response: "nothing: it came back by itself",
    attempts: 0,
    failure: null,
  },
};

function driftEntry(row) {
  const { minutes, ...kind } = DRIFTS[row.drift];
  return {
    machine: row.name,
    pool: row.pool,
    zone: row.zone,
    instance: row.instance?.id ?? null,
    words: row.drift,
    since: at(-minutes * 60_000),
    actedAt: kind.attempts > 0 ? at(-60_000) : null,
    done: [],
    isOver: false,
    overAt: null,
    sentence: `the instance ${row.drift} at ${at(-minutes * 60_000)}: ${kind.response}`,
    ...kind,
  };
}

export function machineDetail(world, row) {
  const entry = world.plan.find((one) => one.machine === row.name) ?? null;
  const { may } = world.me;
  const stopped = row.instance?.state === "stopped";
  const action = (possible, allowed, why) => ({
    possible: possible && allowed,
    why:
      possible && allowed
        ? null
        : !allowed
          ? "you may not patch machinemaintenances in namespace openshift-machine-api"
          : why,
  });
  return {
    version: world.version,
    asOf: at(0),
    row,
    state: STATES.find((state) => state.word === row.state),
    views: {
      rows: [
        line(
          "exists",
          "There",
          "Whether it exists, and since when.",
          "since 2026-09-23T10:00:00Z",
          row.instance ? row.instance.id : "no instance",
          row.node?.name ?? "no node",
          !row.instance,
          "there is no instance of this machine",
        ),
        line(
          "running",
          "Runs",
          "Whether it does its work.",
          row.phase,
          row.instance?.state ?? null,
          row.node?.state ?? null,
          stopped,
          "the machine is Running and its instance is stopped",
        ),
        line(
          "type",
          "Type",
          "The kind of server.",
          "m6i.xlarge",
          row.instance?.type ?? null,
          row.node ? "m6i.xlarge" : null,
          false,
          null,
        ),
        line(
          "zone",
          "Zone",
          "Where it runs.",
          row.zone,
          row.instance ? row.zone : null,
          row.node ? row.zone : null,
          false,
          null,
        ),
        line(
          "address",
          "Address",
          "How it is reached inside of the network.",
          "10.0.12.31",
          "10.0.12.31",
          row.node ? "10.0.12.31" : null,
          false,
          null,
        ),
        line(
          "accepts",
          "Takes new pods",
          "A cordoned node takes none.",
          null,
          null,
          row.node ? (row.node.isCordoned ? "no, it is cordoned" : "yes") : null,
          row.node?.isCordoned ?? false,
          "the node is cordoned",
        ),
      ],
      nodeHidden: null,
    },
    conditions: [
      condition(
        "Machine",
        "InstanceRunning",
        stopped ? "False" : "True",
        stopped,
        stopped ? "The instance is stopped" : "The instance runs",
        stopped ? "StoppedByUser" : null,
        stopped ? "the instance was stopped by a user at 2026-11-02T09:57:00Z" : null,
      ),
      condition(
        "Node",
        "Ready",
        stopped ? "Unknown" : "True",
        stopped,
        stopped ? "Nothing is heard of the node" : "The node is ready",
        stopped ? "NodeStatusUnknown" : "KubeletReady",
        stopped ? "the kubelet stopped posting node status" : null,
      ),
      condition("Machine", "InstanceExists", "True", false, "The instance exists", null, null),
      condition(
        "Node",
        "MemoryPressure",
        "False",
        false,
        "The node has memory to spare",
        "KubeletHasSufficientMemory",
        null,
      ),
    ],
    waits: row.waiting ? [{ reason: row.waiting.reason, message: row.waiting.message }] : [],
    drift: row.drift ? driftEntry(row) : null,
    hold: null,
    pauses: world.pauses.filter((pause) => pause.name === row.name).map((pause) => pause.why),
    outdated: [],
    health: ["MachineHealthCheck workers: healthy"],
    hooks: [],
    controlPlane: row.role === "master" ? ["its node is ready and its etcd member runs"] : null,
    maintenance: entry && {
      phase: entry.standing.is === "underWay" ? entry.standing.phase : null,
      message: null,
      policy: entry.policy,
      reasons: [
        {
          title: entry.because,
          description: "The instance is running on degraded hardware.",
          kind: "Event",
          code: entry.codes[0],
          state: "Active",
          since: at(-28 * 3_600_000),
          sources: ["API"],
          notBefore: entry.deadline,
          notBeforeDeadline: null,
        },
      ],
      entry,
      waits: entry.waitsOn,
      drain:
        entry.standing.is === "underWay"
          ? ["3 of 14 pods are still there", "pod shop/cart-5 waits for disruption budget shop/cart"]
          : [],
      history:
        entry.standing.is === "underWay"
          ? ["2026-11-02T09:40:00Z the node was cordoned", "2026-11-02T09:41:00Z the drain began"]
          : [],
    },
    pods: pods(row),
    help: stopped ? [`machinist approve machine/${row.name}, once it is clear that the pool bears it`] : [],
    actions: {
      approve: action(entry?.needsApproval ?? false, may.approve, "there is nothing to approve"),
      postpone: action(entry?.canPostpone ?? false, may.postpone, "nothing of it can be postponed"),
      pause: action(true, may.pauseMachine, null),
      resume: action(false, may.pauseMachine, "it is not paused"),
    },
  };
}

function line(key, label, hint, machine, instance, node, differs, why) {
  return { key, label, hint, machine, instance, node, differs, why: differs ? why : null };
}

function condition(of, type, status, isBad, title, reason, message) {
  return { of, type, status, isBad, title, reason, message, since: at(-3 * 60_000) };
}

function pods(row) {
  if (!row.node) return { hidden: null, total: 0, pods: [], budgets: [] };
  const pod = (namespace, name, owner, drain, why) => ({
    namespace,
    name,
    phase: "Running",
    owner,
    drain,
    why,
  });
  const blocks = row.state === "maintenance";
  return {
    hidden: null,
    total: 4,
    pods: [
      pod(
        "shop",
        "cart-5",
        "StatefulSet cart",
        blocks ? "blocked" : "evicted",
        blocks ? "budget shop/cart allows no disruption now" : null,
      ),
      pod("shop", "web-7d9f-x2", "ReplicaSet web-7d9f", "evicted", null),
      pod("kube-system", "proxy-kx8", "DaemonSet proxy", "stays", "it belongs to a DaemonSet"),
      pod("monitoring", "node-exporter-9w", "DaemonSet node-exporter", "stays", "it belongs to a DaemonSet"),
    ],
    budgets: [
      {
        namespace: "shop",
        name: "cart",
        allowed: blocks ? 0 : 1,
        healthy: 3,
        desired: 3,
        expected: 4,
        blocks: blocks ? ["shop/cart-5"] : [],
        isImpossible: false,
        words: "it wants 3 of 4 healthy and 3 are: none may go now",
      },
    ],
  };
}

export function timeline(row) {
  const item = (minutes, source, severity, reason, message, about, count = 1) => ({
    time: at(-minutes * 60_000),
    source,
    severity,
    reason,
    message,
    count,
    about,
  });
  const entries = [
    item(
      2,
      "machinist",
      "Normal",
      "StartPlanned",
      "the instance is started at 2026-11-02T10:02:00Z",
      `Machine ${row.name}`,
    ),
    item(3, "cloud", "Warning", "StoppedByUser", "the instance was stopped by a user", `Machine ${row.name}`),
    item(
      3,
      "cluster",
      "Warning",
      "NodeNotReady",
      `Node ${row.node?.name ?? "?"} status is now: NodeNotReady`,
      `Node ${row.node?.name ?? "?"}`,
      2,
    ),
    item(
      60 * 28,
      "cloud",
      "Warning",
      "MaintenanceAnnounced",
      "the cloud announced instance-retirement, not before 2026-11-10T00:00:00Z",
      `MachineMaintenance mm-${row.name}`,
    ),
    item(
      60 * 24 * 40,
      "machinist",
      "Normal",
      "Launched",
      `instance ${row.instance?.id ?? "?"} was launched`,
      `Machine ${row.name}`,
    ),
  ];
  return { machine: row.name, asOf: at(0), entries: row.drift ? entries : entries.slice(3), hidden: null };
}

export { NOW };
