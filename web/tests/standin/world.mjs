// Which fleet does the stand-in show? One fixed moment, one fixed fleet of any size; nothing here is random.
//
// The sentences are written as the operator writes them, but nothing is judged: what is wrong is put in by hand.

export const NOW = Date.parse("2026-11-02T10:00:00Z");
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
export const at = (offset) => new Date(NOW + offset).toISOString().replace(".000Z", "Z");

export const STATES = [
  {
    word: "down",
    title: "Down",
    explanation: "Its instance is stopped, terminated or missing, or the machine failed.",
  },
  {
    word: "attention",
    title: "Needs attention",
    explanation: "It works, or nearly, but something is not as wished.",
  },
  { word: "maintenance", title: "In maintenance", explanation: "A maintenance of ours is under way." },
  { word: "starting", title: "Starting", explanation: "It is being launched, or has no node yet." },
  { word: "leaving", title: "Leaving", explanation: "It is being deleted." },
  { word: "well", title: "Well", explanation: "It does its work." },
];

const ZONES = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];

/** `poolsPerZone` pools in each of three zones, and three machines of the control plane that no pool keeps. */
export function makeFleet({ machinesPerPool = 6, poolsPerZone = 2 } = {}) {
  const rows = [];
  ZONES.forEach((zone, place) => {
    rows.push(machineRow(`master-${place}`, null, zone, "master"));
    for (let pool = 0; pool < poolsPerZone; pool += 1) {
      const name = `${pool === 0 ? "worker" : `batch${pool === 1 ? "" : `-${pool}`}`}-${zone.at(-1)}`;
      for (let index = 0; index < machinesPerPool; index += 1) {
        rows.push(machineRow(`${name}-${suffix(index)}`, name, zone, "worker"));
      }
    }
  });
  return rows;
}

/** Five letters, as a MachineSet gives them, and always the same. */
function suffix(index) {
  const letters = "bcdfghjklmnpqrstvwxz2456789";
  let value = ((index + 7) * 2_654_435_761) % 14_348_907;
  let text = "";
  for (let count = 0; count < 5; count += 1) {
    text += letters[value % letters.length];
    value = Math.floor(value / letters.length);
  }
  return text;
}

function machineRow(name, pool, zone, role) {
  const id = `i-0${[...name]
    .reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 0xfffffff, 7)
    .toString(16)
    .padStart(7, "0")}`;
  return {
    name,
    pool,
    zone,
    role,
    state: "well",
    phase: "Running",
    createdAt: at(-40 * DAY),
    instance: { id, state: "running", type: "m6i.xlarge" },
    node: { name: `ip-10-0-${id.slice(-4, -2)}-${id.slice(-2)}`, state: "Ready", isCordoned: false },
    waiting: null,
    maintenance: null,
    drift: null,
    paused: null,
    revision: "1",
  };
}

/** What is wrong with the small fleet: one of each kind that a person on call meets. */
export function addTroubles(rows) {
  const of = (pool) => rows.filter((row) => row.pool === pool);
  const [stopped, retiring, draining, fresh] = of("worker-a");
  Object.assign(stopped, stoppedByUser());
  stopped.instance = { ...stopped.instance, state: "stopped" };
  stopped.node = { ...stopped.node, state: "NotReady" };
  retiring.maintenance = brief("planned", "Replace", 5 * DAY + 11 * HOUR, 7 * DAY + 14 * HOUR, false, true);
  draining.state = "maintenance";
  draining.node = { ...draining.node, isCordoned: true };
  draining.waiting = {
    reason: "DrainBlocked",
    message: "pod shop/cart-5 cannot be evicted: disruption budget shop/cart allows none now",
    since: at(-12 * 60_000),
  };
  draining.maintenance = brief("underWay", "Replace", -20 * 60_000, 6 * DAY, false, false);
  Object.assign(fresh, { state: "starting", phase: "Provisioning", node: null, createdAt: at(-3 * 60_000) });
  fresh.instance = { ...fresh.instance, state: "pending" };
  fresh.waiting = {
    reason: "NodeNotJoined",
    message: "the instance runs since 2026-11-02T09:57:00Z, and its node has not joined yet",
    since: at(-3 * 60_000),
  };
  const [cordoned, late, leaving] = of("worker-b");
  cordoned.state = "attention";
  cordoned.node = { ...cordoned.node, isCordoned: true };
  cordoned.waiting = {
    reason: "NodeCordoned",
    message: `node ${cordoned.node.name} is cordoned since 2026-11-01T16:20:00Z; nobody of us did that`,
    since: at(-18 * HOUR),
  };
  late.maintenance = brief("blocked", "Reboot", null, 2 * DAY + 23 * HOUR, true, true);
  Object.assign(leaving, { state: "leaving", phase: "Deleting" });
  const [failed, quorum] = [of("batch-c")[0], rows.find((row) => row.name === "master-1")];
  Object.assign(failed, {
    state: "down",
    phase: "Failed",
    instance: null,
    node: null,
    waiting: {
      reason: "InvalidConfiguration",
      message:
        "the cloud refuses the launch: instance type m9x.huge does not exist (spec.providerSpec.value.instanceType)",
      since: at(-2 * HOUR),
    },
  });
  const [terminated, rebooted] = of("worker-c");
  Object.assign(terminated, {
    state: "down",
    drift: "was terminated by a user",
    waiting: {
      reason: "Replacing",
      message: "the instance was terminated by a user; pool worker-c makes another",
      since: at(-9 * 60_000),
    },
  });
  terminated.instance = { ...terminated.instance, state: "terminated" };
  terminated.node = { ...terminated.node, state: "NotReady" };
  rebooted.drift = "was rebooted, and nobody announced it";
  quorum.maintenance = brief("leftAlone", "RebootMigrate", null, 11 * DAY, false, false);
  return {
    stopped,
    retiring,
    draining,
    late,
    quorum,
    planned: [of("worker-b")[4], of("worker-c")[3], of("batch-b")[2]],
  };
}

export function stoppedByUser() {
  return {
    state: "down",
    drift: "was stopped by a user",
    waiting: {
      reason: "DisruptionHeld",
      message: "the instance was stopped by a user; it is started at 2026-11-02T10:02:00Z",
      since: at(-3 * 60_000),
    },
  };
}

function brief(standing, action, start, deadline, isLate, needsApproval) {
  return {
    standing,
    action,
    start: start === null ? null : at(start),
    deadline: deadline === null ? null : at(deadline),
    isLate,
    needsApproval,
  };
}

function entry(row, overrides) {
  return {
    machine: row.name,
    machineUid: `uid-${row.name}`,
    pool: row.pool,
    zone: row.zone,
    policy: "nights",
    standing: { is: "planned" },
    action: "Replace",
    andThen: [],
    start: null,
    end: null,
    window: null,
    latestSafeStart: null,
    deadline: null,
    expectedSeconds: 1200,
    isLate: false,
    codes: ["instance-retirement"],
    because: "event instance-retirement (instance-event-0a1)",
    whyAction: "its host is at the end of its life",
    why: "window saturdays is open then",
    waitsOn: [],
    heldUpBy: [],
    sentence: "",
    needsApproval: false,
    approved: false,
    postponedUntil: null,
    canPostpone: true,
    isStuck: Boolean(
      overrides.isLate ||
        overrides.needsApproval ||
        overrides.standing?.is === "blocked" ||
        overrides.heldUpBy?.length,
    ),
    ...overrides,
  };
}

/** When window `saturdays` opens: 22:00 in Berlin. */
const SATURDAY = Date.parse("2026-11-07T21:00:00Z") - NOW;
const MINUTE = 60_000;

export function makePlan({ draining, retiring, late, quorum, planned }) {
  const outside = {
    reason: "OutsideWindow",
    message: "no window is open; work may begin at 2026-11-07T21:00:00Z",
  };
  const entries = [
    entry(draining, {
      standing: { is: "underWay", phase: "Draining", since: at(-20 * MINUTE) },
      start: at(-20 * MINUTE),
      end: at(10 * MINUTE),
      deadline: at(6 * DAY + 14 * HOUR),
      why: "it was begun, and work that was begun is finished",
      whyAction: "",
      canPostpone: false,
      heldUpBy: [
        {
          reason: "DrainBlocked",
          message: "pod shop/cart-5 cannot be evicted: disruption budget shop/cart allows none now",
        },
      ],
      sentence: `${draining.name} is replaced since 2026-11-02T09:40:00Z (Draining) because of event instance-retirement (instance-event-0b2), due 2026-11-09T00:00:00Z`,
    }),
    entry(retiring, {
      start: at(SATURDAY),
      end: at(SATURDAY + 20 * MINUTE),
      window: "saturdays",
      latestSafeStart: at(7 * DAY + 13 * HOUR),
      deadline: at(7 * DAY + 14 * HOUR),
      needsApproval: true,
      waitsOn: [
        {
          reason: "ApprovalMissing",
          message: "a person must approve it, because policy nights asks for that",
        },
        outside,
      ],
      sentence: `${retiring.name} is replaced at 2026-11-07T21:00:00Z in window saturdays because of event instance-retirement (instance-event-0a1), due 2026-11-10T00:00:00Z; a person must approve it`,
    }),
    ...planned.map((row, index) =>
      entry(row, {
        action: index === 1 ? "StopStart" : "Reboot",
        codes: ["instance-stop"],
        because: "event instance-stop (instance-event-0a3)",
        whyAction: "a stop and a start move it to another host",
        start: at(SATURDAY + (index + 1) * 30 * MINUTE + (index === 2 ? 7 * DAY : 0)),
        end: at(SATURDAY + (index + 1) * 30 * MINUTE + 15 * MINUTE + (index === 2 ? 7 * DAY : 0)),
        window: "saturdays",
        latestSafeStart: at(9 * DAY),
        deadline: at((index === 2 ? 13 : 9) * DAY + 14 * HOUR),
        waitsOn: [outside],
        sentence: `${row.name} is stopped and started at ${at(SATURDAY + (index + 1) * 30 * MINUTE)} in window saturdays because of event instance-stop (instance-event-0a3), due 2026-11-12T00:00:00Z`,
      }),
    ),
    entry(late, {
      standing: { is: "blocked" },
      action: "Reboot",
      andThen: ["StopStart", "Replace"],
      codes: ["instance-reboot"],
      because: "event instance-reboot (instance-event-0a2)",
      whyAction: "a reboot of our own settles it",
      latestSafeStart: "2026-11-05T08:20:00Z",
      deadline: "2026-11-05T09:00:00Z",
      isLate: true,
      needsApproval: true,
      canPostpone: false,
      why: "",
      waitsOn: [
        {
          reason: "NoWindowInTime",
          message:
            "it must begin by 2026-11-05T08:20:00Z to be over in time, and the first time that windows and budgets allow is 2026-11-07T21:00:00Z",
        },
        {
          reason: "ApprovalMissing",
          message: "a person must approve it, because it must be done against the calendar",
        },
      ],
      sentence: `${late.name} is rebooted when it may be because of event instance-reboot (instance-event-0a2), due 2026-11-05T09:00:00Z; it must begin by 2026-11-05T08:20:00Z to be over in time`,
    }),
    entry(quorum, {
      policy: null,
      standing: { is: "leftAlone" },
      action: "RebootMigrate",
      codes: ["system-reboot"],
      because: "event system-reboot (instance-event-0c0)",
      deadline: at(11 * DAY),
      canPostpone: false,
      why: "the default policy only reports on the control plane",
      waitsOn: [
        { reason: "ControlPlaneReportOnly", message: "the default policy only reports on the control plane" },
      ],
      sentence: `${quorum.name} is left alone: the default policy only reports on the control plane`,
    }),
  ];
  return entries;
}

const windowsOfSaturdays = () =>
  [0, 1, 2, 3].map((week) => ({
    start: at(SATURDAY + week * 7 * DAY),
    end: at(SATURDAY + week * 7 * DAY + 4 * HOUR),
    names: ["saturdays"],
    endsBecause: null,
  }));

export function lanes(machines, extraWindows = []) {
  const windows = [...windowsOfSaturdays(), ...extraWindows].sort((one, other) =>
    one.start < other.start ? -1 : 1,
  );
  return [
    {
      policy: "nights",
      machines,
      paused: null,
      faults: [],
      anyHour: false,
      windows,
      freezes: [{ name: "release-week", start: at(8 * DAY + 14 * HOUR), end: at(11 * DAY + 14 * HOUR) }],
    },
    { policy: null, machines: 3, paused: null, faults: [], anyHour: true, windows: [], freezes: [] },
  ];
}

export const everyNight = () =>
  Array.from({ length: 28 }, (_, day) => ({
    start: at(-9 * HOUR + (day + 1) * DAY),
    end: at(-6 * HOUR + (day + 1) * DAY),
    names: ["tried"],
    endsBecause: null,
  }));

export const POLICIES = [
  {
    name: "nights",
    machines: 36,
    paused: null,
    faults: [],
    anyHour: false,
    windows: [{ name: "saturdays", words: "Saturdays at 22:00 for 4h, Europe/Berlin" }],
    freezes: [{ name: "release-week", words: "from 2026-11-11 to 2026-11-14" }],
    nextOpening: at(SATURDAY),
    settings: [{ label: "Approval", value: "a person must approve each", hint: null }],
    spec: {
      selector: { roles: ["worker"] },
      approval: "Manual",
      windows: [{ name: "saturdays", cron: "0 22 * * 6", duration: "4h", timeZone: "Europe/Berlin" }],
      freezes: [
        { name: "release-week", from: "2026-11-11T00:00", to: "2026-11-14T00:00", timeZone: "Europe/Berlin" },
      ],
    },
  },
];
