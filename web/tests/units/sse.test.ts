import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff, EventParser } from "../../src/sse.ts";

const STREAM =
  'event: hello\ndata: {"version":"a-1"}\n\n: a comment\n\nid: a-2\nevent: change\ndata: {"one":1}\n\nid: a-3\r\nevent: change\r\ndata: first\r\ndata: second\r\n\r\n';

test("a stream says the same however it is cut", () => {
  const whole = new EventParser().push(STREAM);
  assert.deepEqual(whole, [
    { id: "", event: "hello", data: '{"version":"a-1"}' },
    { id: "a-2", event: "change", data: '{"one":1}' },
    { id: "a-3", event: "change", data: "first\nsecond" },
  ]);
  for (let size = 1; size < STREAM.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let from = 0; from < STREAM.length; from += size)
      events.push(...parser.push(STREAM.slice(from, from + size)));
    assert.deepEqual(events, whole, `pieces of ${size}`);
    assert.equal(parser.lastId, "a-3");
  }
});

test("an event that did not come whole is not where the stream resumes", () => {
  const parser = new EventParser("a-1");
  assert.deepEqual(parser.push("id: a-2\nevent: change\ndata: {}\n"), []);
  assert.equal(parser.lastId, "a-1");
  parser.push("\n");
  assert.equal(parser.lastId, "a-2");
});

test("the wait between attempts doubles, has an end, and is never in step", () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((attempt) => backoff(attempt, 1)),
    [1_000, 2_000, 4_000, 8_000],
  );
  assert.equal(backoff(0, 0), 500);
  assert.equal(backoff(50, 1), 30_000);
});
