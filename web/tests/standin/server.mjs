// A stand-in for the operator's page server. It serves web/dist and answers /api/v1 out of a fixed fleet, so that
// layout, accessibility, 5,000 machines and lost connections can be tested by the minute and always alike.
//
// It judges nothing and proves nothing about the operator: the tests on the testbed (crates/cli/tests/e2e) use the
// real one.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  calendar,
  driftView,
  fleetMap,
  fleetView,
  machineDetail,
  machineList,
  planView,
  policyList,
  timeline,
  whatIf,
} from "./answers.mjs";
import { addTroubles, at, makeFleet, makePlan, stoppedByUser } from "./world.mjs";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Tokens of the stand-in: who may change things, who may only look, who may not even look. */
export const TOKENS = {
  editor: "token-of-an-editor",
  reader: "token-of-a-reader",
  stranger: "token-of-a-stranger",
};

const MAY_CHANGE = ["approve", "postpone", "pauseCluster", "pauseMachine", "pausePool", "pausePolicy"];
const MAY_SEE = ["read", "plan", "policies", "nodes", "pods"];

function meOf(token) {
  const changes = token === TOKENS.editor;
  const may = Object.fromEntries([
    ...MAY_SEE.map((one) => [one, true]),
    ...MAY_CHANGE.map((one) => [one, changes]),
  ]);
  return {
    user: changes ? "anna" : "system:serviceaccount:openshift-machine-api:viewer",
    groups: ["system:authenticated"],
    namespace: "openshift-machine-api",
    cluster: "shop-x7k2p",
    version: "0.1.0",
    writes: true,
    may,
    why: changes
      ? null
      : "you may look, and change nothing: your user may not patch machinemaintenances in namespace openshift-machine-api",
  };
}

export async function startStandin({ machinesPerPool, poolsPerZone, port = 0 } = {}) {
  const rows = makeFleet({ machinesPerPool, poolsPerZone });
  const troubles = addTroubles(rows);
  const world = { rows, plan: makePlan(troubles), pauses: [], version: "fixed-1", me: meOf(TOKENS.editor) };
  const streams = new Set();
  const changes = [];
  const posts = [];
  let isGone = false;
  let count = 1;

  /** Tells everybody of a change, as one event of the stream. */
  function publish({ changed = [], removed = [], plan = false, drift = false }) {
    count += 1;
    world.version = `fixed-${count}`;
    for (const row of changed) row.revision = String(count);
    const machines = changed.length + removed.length > 0 ? { changed, removed } : null;
    const change = {
      version: world.version,
      asOf: at(0),
      machines,
      fleet: fleetView(world),
      plan,
      policies: false,
      drift,
    };
    const text = `event: change\nid: ${world.version}\ndata: ${JSON.stringify(change)}\n\n`;
    changes.push({ count, text });
    for (const stream of streams) stream.write(text);
  }

  async function answer(request, response) {
    const url = new URL(request.url, "http://stand-in");
    response.setHeader("Content-Security-Policy", POLICY);
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    if (!url.pathname.startsWith("/api/")) return file(url.pathname, response);
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    if (!Object.values(TOKENS).includes(token)) {
      return fail(
        response,
        401,
        "Unauthenticated",
        "the API server does not know this token",
        "make a new one with kubectl create token",
      );
    }
    const me = meOf(token);
    if (url.pathname === "/api/v1/me") return send(response, me);
    if (token === TOKENS.stranger) {
      return fail(
        response,
        403,
        "Forbidden",
        "you may not list machines in namespace openshift-machine-api",
        "ask for the role machinist-viewer",
      );
    }
    if (url.pathname === "/api/v1/events") return stream(request, response);
    if (request.method === "POST") {
      const body = JSON.parse(await text(request));
      posts.push({ path: url.pathname, body });
      return post(url.pathname, body, me, response);
    }
    const found = get(url.pathname, url.searchParams, { ...world, me });
    return found ? send(response, found) : fail(response, 404, "NotFound", "there is no such thing", null);
  }

  function get(path, query, shown) {
    const [, name, part] = /^\/api\/v1\/machines\/([^/]+)(\/timeline)?$/.exec(path) ?? [];
    if (name !== undefined) {
      const row = rows.find((one) => one.name === decodeURIComponent(name));
      if (!row) return undefined;
      return part ? timeline(row) : machineDetail(shown, row);
    }
    const views = {
      "/api/v1/fleet": fleetView,
      "/api/v1/map": fleetMap,
      "/api/v1/machines": machineList,
      "/api/v1/plan": (one) => planView(one),
      "/api/v1/calendar": (one, asked) => calendar(one, asked),
      "/api/v1/policies": policyList,
      "/api/v1/drift": driftView,
    };
    return views[path]?.(shown, query);
  }

  function post(path, body, me, response) {
    if (path === "/api/v1/what-if") {
      const found = whatIf(world, body);
      if (found) return send(response, found);
      return fail(
        response,
        422,
        "Invalid",
        'policies[0].spec.windows[0].cron: "nonsense" is no cron schedule: five fields are wanted',
        null,
      );
    }
    if (!me.may.approve)
      return fail(response, 403, "Forbidden", "you may not patch machinemaintenances", null);
    const [, name, verb] = /^\/api\/v1\/machines\/([^/]+)\/(approve|postpone)$/.exec(path) ?? [];
    const entry = world.plan.find((one) => one.machine === name);
    if (verb === "approve" && entry) {
      Object.assign(entry, { needsApproval: false, approved: true, isStuck: entry.isLate });
      entry.waitsOn = entry.waitsOn.filter((wait) => wait.reason !== "ApprovalMissing");
      publish({ plan: true });
      return send(response, { changed: true, sentence: `the maintenance of ${name} is approved` });
    }
    if (verb === "postpone" && entry) {
      entry.postponedUntil = body.until;
      publish({ plan: true });
      return send(response, {
        changed: true,
        sentence: `the maintenance of ${name} begins no earlier than ${body.until}`,
      });
    }
    if (path === "/api/v1/pause") {
      world.pauses = [
        { place: body.place, name: body.name, why: `${body.reason} (by anna at 2026-11-02T10:00:00Z)` },
      ];
      publish({ plan: true });
      return send(response, { changed: true, sentence: "maintenance is paused" });
    }
    if (path === "/api/v1/resume") {
      world.pauses = [];
      publish({ plan: true });
      return send(response, { changed: true, sentence: "maintenance goes on" });
    }
    return fail(response, 409, "Conflict", "there is nothing to do", null);
  }

  function stream(request, response) {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(
      `event: hello\ndata: ${JSON.stringify({ version: world.version, asOf: at(0), heartbeatSeconds: 15 })}\n\n`,
    );
    const last = Number(/^fixed-(\d+)$/.exec(request.headers["last-event-id"] ?? "")?.[1] ?? Number.NaN);
    if (Number.isNaN(last))
      response.write(
        `event: reset\ndata: ${JSON.stringify({ version: world.version, why: "no version was given" })}\n\n`,
      );
    else for (const change of changes) if (change.count > last) response.write(change.text);
    streams.add(response);
    response.on("close", () => streams.delete(response));
  }

  const server = createServer((request, response) => {
    if (isGone) return void request.socket.destroy();
    answer(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));

  return {
    url: `http://127.0.0.1:${server.address().port}`,
    rows,
    plan: world.plan,
    posts,
    troubles,
    /** Somebody stops an instance in the cloud's console. */
    stopInstance(name) {
      const row = rows.find((one) => one.name === name);
      Object.assign(row, stoppedByUser(), {
        instance: { ...row.instance, state: "stopped" },
        node: { ...row.node, state: "NotReady" },
      });
      publish({ changed: [row], drift: true });
    },
    /** Many machines change at once, as when a zone fails. */
    change(some, state) {
      for (const row of some) row.state = state;
      publish({ changed: some });
    },
    /** The operator cannot be reached. */
    goAway() {
      isGone = true;
      for (const stream of streams) stream.destroy();
    },
    comeBack() {
      isGone = false;
    },
    async close() {
      for (const stream of streams) stream.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(response, body) {
  response.setHeader("Content-Type", "application/json");
  response.end(JSON.stringify(body));
}

function fail(response, status, code, message, hint) {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { code, message, hint } }));
}

async function text(request) {
  let all = "";
  for await (const piece of request) all += piece;
  return all;
}

async function file(path, response) {
  const name = path.includes(".") ? path : "/index.html";
  try {
    const body = await readFile(join(DIST, name));
    response.setHeader("Content-Type", TYPES[extname(name)] ?? "application/octet-stream");
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
}
