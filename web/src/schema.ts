// What does the API send and take? Generated out of deploy/page/openapi.json by scripts/types.mjs.
/* biome-ignore-all lint: generated */
/* biome-ignore-all format: generated */

export type Action = { "possible": boolean; "why": (string | null) };

export type Actions = { "approve": Action; "pause": Action; "postpone": Action; "resume": Action };

export type Approve = { "anyReason"?: boolean };

export type Bar = { "end": string; "entry": EntryView; "start": string; "tone": Tone };

export type BudgetView = { "allowed": number; "blocks": (string)[]; "desired": number; "expected": number; "healthy": number; "isImpossible": boolean; "name": string; "namespace": string; "words": string };

export type CalendarView = { "asOf": string; "bars": (Bar)[]; "from": string; "lanes": (Lane)[]; "notes": (Note)[]; "to": string; "unplaced": (EntryView)[]; "version": string };

export type CalendarWindow = { "end": string; "endsBecause": (string | null); "names": (string)[]; "start": string };

export type Change = { "asOf": string; "drift": boolean; "fleet": (FleetView | null); "machines": (MachineChanges | null); "plan": boolean; "policies": boolean; "version": string };

export type ChangeWord = ("added" | "removed" | "earlier" | "later" | "other");

export type ConditionView = { "isBad": boolean; "message": (string | null); "of": string; "reason": (string | null); "since": (string | null); "status": string; "title": string; "type": string };

export type Counts = { "byState": Record<string, number>; "machines": number };

export type DeedView = { "at": string; "words": string };

export type Done = { "changed": boolean; "sentence": string };

export type DrainWord = ("evicted" | "blocked" | "refuses" | "stays");

export type DriftEntry = { "actedAt": (string | null); "attempts": number; "cause": (string | null); "class": string; "done": (DeedView)[]; "failure": (string | null); "instance": (string | null); "isOver": boolean; "machine": string; "needsAPerson": boolean; "overAt": (string | null); "pool": (string | null); "response": string; "sentence": string; "since": string; "words": string; "zone": (string | null) };

export type DriftList = { "asOf": string; "entries": (DriftEntry)[]; "hidden": (string | null); "past": (DriftEntry)[]; "total": number; "version": string };

export type EntryView = { "action": MaintenanceAction; "andThen": (MaintenanceAction)[]; "approved": boolean; "because": string; "canPostpone": boolean; "codes": (string)[]; "deadline": (string | null); "end": (string | null); "expectedSeconds": number; "heldUpBy": (MaintenanceWait)[]; "isLate": boolean; "isStuck": boolean; "latestSafeStart": (string | null); "machine": string; "machineUid": string; "needsApproval": boolean; "policy": (string | null); "pool": (string | null); "postponedUntil": (string | null); "sentence": string; "standing": Standing; "start": (string | null); "waitsOn": (Wait)[]; "why": string; "whyAction": string; "window": (string | null); "zone": (string | null) };

export type ErrorBody = { "error": ErrorWords };

export type ErrorWords = { "code": string; "hint": (string | null); "message": string };

export type Fact = { "hint": (string | null); "label": string; "value": (string | null) };

export type FleetMap = { "asOf": string; "machines": ([string, number, number, number])[]; "pools": ((string | null))[]; "states": (MachineState)[]; "total": number; "version": string; "zones": ((string | null))[] };

export type FleetView = { "asOf": string; "attention": (MachineRow)[]; "attentionTotal": number; "counts": Counts; "drift": number; "headline": string; "maintenance": MaintenanceCounts; "namespace": string; "notes": (Note)[]; "pauses": (PauseView)[]; "poolless": Counts; "pools": (PoolView)[]; "states": (State)[]; "version": string; "zones": (ZoneView)[] };

export type FreezeView = { "end": string; "name": string; "start": string };

export type InstanceView = { "id": string; "state": (string | null); "type": (string | null); "zone": (string | null) };

export type Lane = { "anyHour": boolean; "faults": (string)[]; "freezes": (FreezeView)[]; "machines": number; "paused": (string | null); "policy": (string | null); "windows": (CalendarWindow)[] };

export type MachineChanges = { "changed": (MachineRow)[]; "removed": (string)[] };

export type MachineDetail = { "actions": Actions; "asOf": string; "conditions": (ConditionView)[]; "controlPlane": ((string)[] | null); "drift": (DriftEntry | null); "health": (string)[]; "help": (string)[]; "hold": (string | null); "hooks": (string)[]; "maintenance": (MaintenanceDetail | null); "outdated": (string)[]; "pauses": (string)[]; "pods": PodsView; "row": MachineRow; "state": State; "version": string; "views": ViewsView; "waits": (WaitView)[] };

export type MachineList = { "asOf": string; "machines": (MachineRow)[]; "next": (string | null); "total": number; "version": string };

export type MachineRow = { "createdAt": (string | null); "drift": (string | null); "instance": (InstanceView | null); "maintenance": (RowMaintenance | null); "name": string; "node": (NodeView | null); "paused": (string | null); "phase": string; "pool": (string | null); "revision": string; "role": (string | null); "state": MachineState; "waiting": (Waiting | null); "zone": (string | null) };

export type MachineState = ("well" | "maintenance" | "starting" | "leaving" | "attention" | "down");

export type MaintenanceAction = ("Nothing" | "Reboot" | "RebootMigrate" | "StopStart" | "Replace");

export type MaintenanceCounts = { "blocked": number; "due": number; "late": number; "leftAlone": number; "needApproval": number; "nextStart": (string | null); "planned": number; "underWay": number };

export type MaintenanceDetail = { "drain": (string)[]; "entry": (EntryView | null); "history": (string)[]; "message": (string | null); "phase": (string | null); "policy": (string | null); "reasons": (ReasonView)[]; "waits": (WaitView)[] };

export type MaintenancePhase = ("Pending" | "Scheduled" | "Surging" | "Draining" | "Acting" | "Verifying" | "Undoing" | "Succeeded" | "Failed" | "Cancelled");

export type MaintenanceReasonKind = ("Event" | "Request" | "Drift" | "Outdated");

export type MaintenanceReasonState = ("Active" | "Completed" | "Cancelled" | "Vanished");

export type MaintenanceWait = { "message": string; "reason": string };

export type May = { "approve": boolean; "nodes": boolean; "pauseCluster": boolean; "pauseMachine": boolean; "pausePolicy": boolean; "pausePool": boolean; "plan": boolean; "pods": boolean; "policies": boolean; "postpone": boolean; "read": boolean };

export type Me = { "cluster": (string | null); "groups": (string)[]; "may": May; "namespace": string; "user": string; "version": string; "why": (string | null); "writes": boolean };

export type Named = { "name": string; "words": string };

export type NodeState = (("Ready" | "NotReady") | "Unknown" | "Missing" | "NotVisible");

export type NodeView = { "isCordoned": boolean; "name": string; "state": NodeState };

export type Note = { "about": string; "message": string; "reason": string; "severity": Severity };

export type Pause = { "name": (string | null); "place": PlaceWord; "reason"?: string };

export type PauseView = { "name": (string | null); "place": PlaceWord; "why": string };

export type PlaceWord = ("cluster" | "policy" | "pool" | "machine");

export type PlanChange = { "after": (EntryView | null); "before": (EntryView | null); "change": ChangeWord; "machine": string; "sentence": string };

export type PlanView = { "asOf": string; "entries": (EntryView)[]; "notes": (Note)[]; "version": string };

export type PodView = { "drain": DrainWord; "name": string; "namespace": string; "owner": (string | null); "phase": (string | null); "why": (string | null) };

export type PodsView = { "budgets": (BudgetView)[]; "hidden": (string | null); "pods": (PodView)[]; "total": number };

export type PolicyList = { "asOf": string; "policies": (PolicyView)[]; "version": string };

export type PolicyView = { "anyHour": boolean; "faults": (string)[]; "freezes": (Named)[]; "machines": number; "name": (string | null); "nextOpening": (string | null); "paused": (string | null); "settings": (Fact)[]; "spec"?: unknown; "windows": (Named)[] };

export type PoolList = { "asOf": string; "pools": (PoolView)[]; "version": string };

export type PoolView = { "available": number; "counts": Counts; "current": number; "desired": number; "instanceType": (string | null); "name": string; "paused": (string | null); "ready": number; "role": (string | null); "waiting": (Waiting | null); "zone": (string | null) };

export type Postpone = { "until": (string | null) };

export type ReasonView = { "code": string; "description": (string | null); "kind": MaintenanceReasonKind; "notBefore": (string | null); "notBeforeDeadline": (string | null); "since": string; "sources": (string)[]; "state": MaintenanceReasonState; "title": string };

export type Resume = { "name": (string | null); "place": PlaceWord };

export type RowMaintenance = { "action": MaintenanceAction; "deadline": (string | null); "isLate": boolean; "needsApproval": boolean; "standing": StandingWord; "start": (string | null) };

export type Severity = ("Normal" | "Warning");

export type Standing = ({ "is": "underWay"; "phase": MaintenancePhase; "since": string } | { "is": "due" } | { "is": "planned" } | { "eventId": string; "is": "movesEvent"; "to": string } | { "is": "blocked" } | { "is": "leftAlone" });

export type StandingWord = ("underWay" | "due" | "planned" | "movesEvent" | "blocked" | "leftAlone");

export type State = { "explanation": string; "title": string; "word": MachineState };

export type SupposedEvent = { "code": string; "machine": string; "movableUntil": (string | null); "notBefore": string };

export type SupposedRequest = { "action": (MaintenanceAction | null); "deadline": (string | null); "machine": string; "notBefore": (string | null) };

export type Timeline = { "asOf": string; "entries": (TimelineItem)[]; "hidden": (string | null); "machine": string };

export type TimelineItem = { "about": string; "count": number; "message": string; "reason": string; "severity": Severity; "source": string; "time": string };

export type Tone = (("running" | "planned") | "late" | "moves");

export type ViewRow = { "differs": boolean; "hint": string; "instance": (string | null); "key": string; "label": string; "machine": (string | null); "node": (string | null); "why": (string | null) };

export type ViewsView = { "nodeHidden": (string | null); "rows": (ViewRow)[] };

export type Wait = { "message": string; "reason": string };

export type WaitView = { "message": string; "reason": string };

export type Waiting = { "message": string; "reason": string; "since": (string | null) };

export type WhatIf = { "events"?: (SupposedEvent)[]; "policies"?: (unknown)[]; "requests"?: (SupposedRequest)[]; "withoutPolicies"?: (string)[] };

export type WhatIfAnswer = { "after": PlanView; "asOf": string; "before": PlanView; "calendar": CalendarView; "changes": (PlanChange)[]; "summary": string };

export type ZoneView = { "counts": Counts; "name": (string | null) };

export interface Answers {
  "GET /calendar": CalendarView;
  "GET /drift": DriftList;
  "GET /events": Change;
  "GET /fleet": FleetView;
  "GET /machines": MachineList;
  "GET /machines/{name}": MachineDetail;
  "POST /machines/{name}/approve": Done;
  "POST /machines/{name}/postpone": Done;
  "GET /machines/{name}/timeline": Timeline;
  "GET /map": FleetMap;
  "GET /me": Me;
  "GET /openapi.json": unknown;
  "POST /pause": Done;
  "GET /plan": PlanView;
  "GET /policies": PolicyList;
  "GET /pools": PoolList;
  "POST /resume": Done;
  "POST /what-if": WhatIfAnswer;
}

export interface Questions {
  "POST /machines/{name}/approve": Approve;
  "POST /machines/{name}/postpone": Postpone;
  "POST /pause": Pause;
  "POST /resume": Resume;
  "POST /what-if": WhatIf;
}
