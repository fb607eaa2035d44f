import assert from "node:assert/strict";
import { test } from "node:test";
import { isFiltered, NO_FILTER, readFilter, toggled, writeFilter } from "../../src/filter.ts";
import { machinePath, routeOf, tokenInFragment } from "../../src/route.ts";

test("a filter in the address is the filter that was written there", () => {
  const filter = {
    search: "ip-10 & co",
    pools: ["worker-a", "-"],
    zones: ["eu-west-1a"],
    states: ["down" as const],
    attention: true,
  };
  const text = writeFilter(filter).toString();
  assert.equal(text, "search=ip-10+%26+co&pool=-&pool=worker-a&zone=eu-west-1a&state=down&attention=true");
  assert.deepEqual(readFilter(`?${text}`), { ...filter, pools: ["-", "worker-a"] });
});

test("nothing chosen is no filter, and nonsense in the address is left out", () => {
  assert.equal(writeFilter(NO_FILTER).toString(), "");
  assert.equal(isFiltered(readFilter("?search=%20&state=purple&as=table")), false);
  assert.deepEqual(toggled(["a"], "b"), ["a", "b"]);
  assert.deepEqual(toggled(["a", "b"], "a"), ["b"]);
});

test("each view has an address, and a machine's name may hold anything", () => {
  assert.deepEqual(routeOf("/", "?pool=a"), { view: "fleet", query: "?pool=a" });
  assert.deepEqual(routeOf("/plan/", ""), { view: "plan", query: "" });
  assert.deepEqual(routeOf("/drift", ""), { view: "drift" });
  assert.deepEqual(routeOf(machinePath("a/b.c"), ""), { view: "machine", name: "a/b.c" });
  assert.deepEqual(routeOf("/machines/%E0%A4%A", ""), { view: "nowhere", path: "/machines/%E0%A4%A" });
  assert.deepEqual(routeOf("/machines/a/b", ""), { view: "machine", name: "a/b" });
  assert.deepEqual(routeOf("/machines/a/b/c", ""), { view: "nowhere", path: "/machines/a/b/c" });
});

test("a token behind the address is found, and only there", () => {
  assert.equal(tokenInFragment("#token=a.b-c_d"), "a.b-c_d");
  assert.equal(tokenInFragment("#main"), undefined);
  assert.equal(tokenInFragment("#token="), undefined);
});
