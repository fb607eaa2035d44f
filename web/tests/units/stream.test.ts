import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, openStream } from "../../src/stream.ts";

/** A server whose every connection is answered by the test. */
function fakeServer(answers: (() => Response | Promise<Response>)[]) {
  const asked: Record<string, string>[] = [];
  const fetch = (async (_url: unknown, init: RequestInit) => {
    asked.push(init.headers as Record<string, string>);
    const answer = answers[asked.length - 1];
    if (!answer) return await new Promise<Response>(() => {});
    return await answer();
  }) as typeof globalThis.fetch;
  return { asked, fetch };
}

const text = (body: string) => () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });

function run(answers: (() => Response | Promise<Response>)[], until: (states: string[]) => boolean) {
  const server = fakeServer(answers);
  const seen: Connection[] = [];
  const events: string[] = [];
  return new Promise<{
    asked: Record<string, string>[];
    states: string[];
    events: string[];
    seen: Connection[];
  }>((resolve) => {
    const stream = openStream({
      url: "/api/v1/events",
      token: "secret",
      lastId: "a-1",
      fetch: server.fetch,
      now: () => 1_000,
      random: () => 1,
      wait: async () => {},
      onEvent: (event) => events.push(`${event.id} ${event.data}`),
      onConnection: (connection) => {
        seen.push(connection);
        const states = seen.map((one) => one.state);
        if (!until(states)) return;
        stream?.close();
        resolve({ asked: server.asked, states, events, seen });
      },
    });
  });
}

test("after a break the stream resumes behind the last event that came whole", async () => {
  const { asked, events, states } = await run(
    [
      text("id: a-2\nevent: change\ndata: two\n\nid: a-3\ndata: half"),
      text("id: a-3\nevent: change\ndata: three\n\n"),
      text(""),
    ],
    (states) => states.filter((state) => state === "live").length === 3,
  );
  assert.deepEqual(events, ["a-2 two", "a-3 three"]);
  assert.deepEqual(
    asked.map((headers) => headers["Last-Event-ID"]),
    ["a-1", "a-2", "a-3"],
  );
  assert.ok(asked.every((headers) => headers.Authorization === "Bearer secret"));
  assert.deepEqual(states.slice(0, 4), ["connecting", "live", "lost", "live"]);
});

test("a server that cannot be reached, or is not ready, is tried again, and it is said since when", async () => {
  const unreachable = () => Promise.reject(new TypeError("no route"));
  const notReady = () => new Response("", { status: 503 });
  const { seen } = await run([unreachable, notReady, text("")], (states) => states.includes("live"));
  assert.deepEqual(
    seen.map((one) =>
      one.state === "lost" ? `${one.why} since ${one.since}, next ${one.nextTry}` : one.state,
    ),
    [
      "connecting",
      "the server cannot be reached since 1000, next 2000",
      "the server answered 503 since 1000, next 3000",
      "live",
    ],
  );
});

test("a refused token ends the stream: asking again would change nothing", async () => {
  const { asked, seen } = await run([() => new Response("", { status: 401 })], (states) =>
    states.includes("refused"),
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.length, 1);
  assert.deepEqual(seen.at(-1), { state: "refused", status: 401 });
});
