// What does the operator's API answer? The types of /api/v1, as its OpenAPI document states them.
//
// Everything here was judged by the operator: states, sentences, what differs, what a button may do. The page shows
// it and adds nothing.

export interface ErrorBody {
  error: { code: string; message: string; hint: string | null };
}

export type MachineState =
  | "well" // does its work
  | "starting" // being launched, booting, no node yet
  | "maintenance" // a maintenance of ours is under way
  | "leaving" // is being deleted
  | "attention" // works, or nearly, but something is not as wished (node not ready, cordoned, impaired, balancers, paused by another API)
  | "down"; // instance stopped, terminated, missing, failed
export interface State {
  word: MachineState;
  title: string /* "Down" */;
  explanation: string /* one sentence for a hover: what the word means */;
}

export interface Waiting {
  reason: string;
  message: string;
  since: string | null;
} // as in `machinist status`
export interface Wait {
  reason: string;
  message: string;
}

export interface Me {
  user: string;
  groups: string[];
  namespace: string;
  cluster: string | null; // infrastructure name, if there is one
  version: string; // of the operator
  writes: boolean; // --page-writes
  may: {
    read: boolean;
    plan: boolean;
    policies: boolean;
    nodes: boolean;
    pods: boolean;
    approve: boolean;
    postpone: boolean;
    pauseCluster: boolean;
    pauseMachine: boolean;
    pausePool: boolean;
    pausePolicy: boolean;
  }; // writes are false when `writes` is false
  why: string | null; // why nothing can be changed, in words (null when something can)
}

export interface Counts {
  machines: number;
  byState: Record<string, number> /* by MachineState, all six */;
}
export interface PoolView {
  name: string;
  zone: string | null;
  role: string | null;
  instanceType: string | null;
  desired: number;
  current: number;
  ready: number;
  available: number;
  counts: Counts;
  waiting: Waiting | null;
  paused: string | null;
}
export interface FleetView {
  version: string; // give it to the stream as Last-Event-ID: nothing is missed
  asOf: string;
  namespace: string;
  headline: string; // "38 of 40 machines are well; 1 is down; 1 maintenance is under way, the next begins 2026-..Z"
  counts: Counts;
  zones: { name: string | null; counts: Counts }[];
  pools: PoolView[]; // by name
  poolless: Counts; // machines that no pool keeps
  states: State[]; // all six, in the legend's order
  attention: MachineRow[]; // down first, then attention, at most 20
  attentionTotal: number;
  maintenance: {
    underWay: number;
    due: number;
    planned: number;
    blocked: number;
    late: number;
    leftAlone: number;
    needApproval: number;
    nextStart: string | null;
  };
  drift: number; // machines with an open drift record
  pauses: PauseView[];
  notes: Note[];
}
export interface PauseView {
  place: "cluster" | "policy" | "pool" | "machine";
  name: string | null;
  why: string;
}
export interface Note {
  severity: "Normal" | "Warning";
  reason: string;
  about: string /* "machine/x" */;
  message: string;
}
export interface PoolList {
  version: string;
  asOf: string;
  pools: PoolView[];
}

export interface MachineRow {
  name: string;
  pool: string | null;
  zone: string | null;
  role: string | null;
  state: MachineState;
  phase: string /* "" = nobody has looked */;
  createdAt: string | null;
  instance: { id: string; state: string | null; type: string | null } | null;
  node: {
    name: string;
    state: "Ready" | "NotReady" | "Unknown" | "Missing" | "NotVisible";
    isCordoned: boolean;
  } | null;
  waiting: Waiting | null;
  maintenance: {
    standing: PlanEntry["standing"]["is"];
    action: string;
    start: string | null;
    deadline: string | null;
    isLate: boolean;
    needsApproval: boolean;
  } | null;
  drift: string | null; // class in words: "was stopped by a user"
  paused: string | null;
  revision: string; // changes when anything of the machine's detail may have changed
}
export interface MachineList {
  version: string;
  asOf: string;
  total: number /* that match */;
  machines: MachineRow[];
  next: string | null;
}
export interface FleetMap {
  // compact: 5,000 machines are about 250 kB
  version: string;
  asOf: string;
  total: number;
  pools: (string | null)[];
  zones: (string | null)[];
  states: MachineState[];
  machines: [name: string, pool: number, zone: number, state: number][]; // indexes into the lists; by pool, then name
}

export interface Fact {
  label: string;
  value: string | null;
  hint: string | null;
} // a line in a column
export interface MachineDetail {
  version: string;
  asOf: string;
  row: MachineRow;
  state: State;
  views: {
    // three columns side by side; the same `key` is the same question
    rows: {
      key: string;
      label: string;
      hint: string;
      machine: string | null;
      instance: string | null;
      node: string | null;
      differs: boolean;
      why: string | null /* in words what differs */;
    }[];
    nodeHidden: string | null; // "you may not get nodes" -> node column is null everywhere
  };
  conditions: ConditionView[]; // of machine and node; not well ones first
  waits: Wait[]; // why it waits, all of it; first = row.waiting
  drift: DriftEntry | null;
  hold: string | null;
  pauses: string[]; // sentences
  outdated: string[]; // in what it differs from its pool's template (field names only)
  health: string[]; // what its MachineHealthChecks think, sentences
  hooks: string[]; // what holds its deletion
  controlPlane: string[] | null;
  maintenance: MaintenanceDetail | null;
  pods: {
    hidden: string | null;
    total: number;
    pods: PodView[] /* at most 300, blockers first */;
    budgets: BudgetView[];
  };
  help: string[]; // what a person can do (commands)
  actions: {
    // what the buttons may do now, for this user; `why` says why not
    approve: Action;
    postpone: Action;
    pause: Action;
    resume: Action;
  };
}
export interface Action {
  possible: boolean;
  why: string | null;
}
export interface ConditionView {
  of: string /* "Machine", "Node" or "Maintenance" */;
  type: string;
  status: string /* "True", "False" or "Unknown" */;
  isBad: boolean;
  title: string /* in words, as it is: "The instance is stopped" */;
  reason: string | null;
  message: string | null;
  since: string | null;
}
export interface PodView {
  namespace: string;
  name: string;
  phase: string | null;
  owner: string | null /* "ReplicaSet web-1" */;
  drain: "evicted" | "blocked" | "stays" | "refuses";
  why: string | null /* "budget default/web allows no disruption now" */;
}
export interface BudgetView {
  namespace: string;
  name: string;
  allowed: number;
  healthy: number;
  desired: number;
  expected: number;
  blocks: string[] /* pods here, "ns/name" */;
  isImpossible: boolean;
  words: string;
}
export interface MaintenanceDetail {
  phase: string | null;
  message: string | null;
  policy: string | null;
  reasons: ReasonView[];
  entry: PlanEntry | null;
  waits: Wait[];
  drain: string[];
  history: string[];
}
export interface ReasonView {
  title: string;
  description: string | null;
  kind: "Event" | "Request" | "Drift" | "Outdated";
  code: string;
  state: "Active" | "Completed" | "Cancelled" | "Vanished";
  since: string;
  sources: string[];
  notBefore: string | null;
  notBeforeDeadline: string | null;
}

export interface Timeline {
  machine: string;
  asOf: string;
  entries: TimelineItem[] /* newest first, at most 300 */;
  hidden: string | null /* "you may not list events" */;
}
export interface TimelineItem {
  time: string;
  source: string /* "cloud", "cluster" or "machinist" */;
  severity: "Normal" | "Warning";
  reason: string;
  message: string;
  count: number;
  about: string /* "Machine x", "Node y", "MachineMaintenance mm-x" */;
}

export interface PlanView {
  version: string;
  asOf: string;
  entries: PlanEntry[];
  notes: Note[];
}
export interface PlanEntry {
  // the entry of core::maintenance::plan, and four fields more
  machine: string;
  machineUid: string;
  pool: string | null;
  zone: string | null;
  policy: string | null;
  standing:
    | { is: "underWay"; phase: string; since: string }
    | { is: "due" }
    | { is: "planned" }
    | { is: "movesEvent"; eventId: string; to: string }
    | { is: "blocked" }
    | { is: "leftAlone" };
  action: "Nothing" | "Reboot" | "RebootMigrate" | "StopStart" | "Replace";
  andThen: string[];
  start: string | null;
  end: string | null;
  window: string | null;
  latestSafeStart: string | null;
  deadline: string | null;
  expectedSeconds: number;
  isLate: boolean;
  codes: string[];
  because: string;
  whyAction: string;
  why: string;
  waitsOn: Wait[];
  heldUpBy: Wait[]; // of one that is under way
  sentence: string; // all of it in one sentence
  needsApproval: boolean;
  approved: boolean;
  postponedUntil: string | null;
  canPostpone: boolean;
  isStuck: boolean; // late, blocked, to approve, or held up by what does not pass by itself
}

export interface CalendarView {
  version: string;
  asOf: string;
  from: string;
  to: string;
  lanes: Lane[]; // one for each policy that has machines or openings; null name = machines without a policy
  bars: Bar[]; // everything with a start that touches from..to, under way included; sorted by start
  unplaced: PlanEntry[]; // blocked or left alone: no time
  notes: Note[];
}
export interface Lane {
  policy: string | null;
  machines: number;
  paused: string | null;
  faults: string[];
  anyHour: boolean;
  windows: { start: string; end: string; names: string[]; endsBecause: string | null }[];
  freezes: { name: string; start: string; end: string }[];
}
export interface Bar {
  entry: PlanEntry;
  start: string;
  end: string;
  tone: "running" | "planned" | "late" | "moves";
}

export interface PolicyList {
  version: string;
  asOf: string;
  policies: PolicyView[];
}
export interface PolicyView {
  name: string | null /* null: the defaults for machines without a policy */;
  machines: number;
  paused: string | null;
  faults: string[];
  anyHour: boolean;
  windows: { name: string; words: string }[];
  freezes: { name: string; words: string }[];
  nextOpening: string | null;
  settings: Fact[]; // approval, budgets, cool-down, surge, drain deadline, when no window fits, ... in words
  spec?: unknown;
} // the spec as stored (to prefill a what-if); a policy holds no secrets

export interface DriftView {
  version: string;
  asOf: string;
  entries: DriftEntry[] /* not over; newest first */;
  total: number;
  past: DriftEntry[] /* over, as far as it is still known */;
  hidden: string | null /* why some of the past is not known */;
}
export interface DriftEntry {
  machine: string;
  pool: string | null;
  zone: string | null;
  instance: string | null;
  class: string;
  words: string /* "was stopped by a user" */;
  since: string;
  cause: string | null /* who or what did it, as far as is known */;
  response: string /* what is being done, a sentence */;
  attempts: number;
  actedAt: string | null;
  failure: string | null;
  needsAPerson: boolean;
  done: { at: string; words: string }[] /* what was done and came of it, oldest first */;
  isOver: boolean;
  overAt: string | null;
  sentence: string;
}

export interface WhatIf {
  policies: object[] /* whole MaintenancePolicy manifests (metadata.name, spec); in the place of those of the same name */;
  withoutPolicies: string[];
  events: { machine: string; code: string; notBefore: string; movableUntil: string | null }[];
  requests: {
    machine: string;
    action: PlanEntry["action"] | null;
    notBefore: string | null;
    deadline: string | null;
  }[];
} // missing lists count as []
export interface WhatIfAnswer {
  asOf: string;
  calendar: CalendarView; // of the plan after
  before: PlanView;
  after: PlanView;
  changes: {
    machine: string;
    change: "added" | "removed" | "earlier" | "later" | "other";
    before: PlanEntry | null;
    after: PlanEntry | null;
    sentence: string;
  }[];
  summary: string;
}

export interface Approve {
  anyReason?: boolean;
}
export interface Postpone {
  until: string | null /* null takes the postponement back */;
}
export interface Pause {
  place: "cluster" | "policy" | "pool" | "machine";
  name: string | null;
  reason: string;
}
export interface Resume {
  place: "cluster" | "policy" | "pool" | "machine";
  name: string | null;
}
export interface Done {
  changed: boolean;
  sentence: string;
}

export interface Change {
  version: string;
  asOf: string;
  machines: { changed: MachineRow[]; removed: string[] } | null; // deltas
  fleet: FleetView | null; // whole, if changed
  plan: boolean;
  policies: boolean;
  drift: boolean;
} // true: ask for it again if it is shown
