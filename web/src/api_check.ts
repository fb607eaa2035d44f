// Does the page know the API as it is? Nothing runs here: where the operator's types (schema.ts) and the page's
// (api.ts) part, this does not compile.
import type * as page from "./api.ts";
import type { Answers, Questions } from "./schema.ts";

/** What the operator sends must be what the page reads. */
type Reads = {
  "GET /me": page.Me;
  "GET /fleet": page.FleetView;
  "GET /pools": page.PoolList;
  "GET /map": page.FleetMap;
  "GET /machines": page.MachineList;
  "GET /machines/{name}": page.MachineDetail;
  "GET /machines/{name}/timeline": page.Timeline;
  "GET /plan": page.PlanView;
  "GET /calendar": page.CalendarView;
  "GET /policies": page.PolicyList;
  "GET /drift": page.DriftView;
  "GET /events": page.Change;
  "POST /what-if": page.WhatIfAnswer;
  "POST /machines/{name}/approve": page.Done;
  "POST /machines/{name}/postpone": page.Done;
  "POST /pause": page.Done;
  "POST /resume": page.Done;
};

/** What the page sends must be what the operator takes. */
type Sends = {
  "POST /what-if": page.WhatIf;
  "POST /machines/{name}/approve": page.Approve;
  "POST /machines/{name}/postpone": page.Postpone;
  "POST /pause": page.Pause;
  "POST /resume": page.Resume;
};

export const reads = (sent: { [Path in keyof Reads]: Answers[Path] }): Reads => sent;
export const sends = (sent: Sends): { [Path in keyof Sends]: Questions[Path] } => sent;
