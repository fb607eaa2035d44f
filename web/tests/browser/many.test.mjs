// Do 5,000 machines stay usable? Everything must work; how long it takes is measured and reported, not asserted: the
// numbers belong to the machine that the test runs on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "../chromium.mjs";
import { startStandin, TOKENS } from "../standin/server.mjs";

let browser;
let standin;
before(async () => {
  standin = await startStandin({ poolsPerZone: 8, machinesPerPool: 209 });
  browser = await launch();
});
after(async () => {
  await browser.close();
  await standin.close();
});

/** Runs what a reader does, and gives the milliseconds until the browser has drawn what followed. */
async function drawn(page, act, until) {
  const begin = await page.evaluate(() => performance.now());
  await act();
  await until();
  return page.evaluate(
    (from) =>
      new Promise((resolve) =>
        requestAnimationFrame(() => setTimeout(() => resolve(Math.round(performance.now() - from)))),
      ),
    begin,
  );
}

/** The longest frames while something goes on. */
async function frames(page, act) {
  await page.evaluate(() => {
    globalThis.frames_seen = [];
    let last = performance.now();
    const next = (now) => {
      globalThis.frames_seen.push(now - last);
      last = now;
      globalThis.frames_handle = requestAnimationFrame(next);
    };
    globalThis.frames_handle = requestAnimationFrame(next);
  });
  await act();
  const seen = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.frames_handle);
    return globalThis.frames_seen;
  });
  seen.sort((one, other) => one - other);
  const at = (part) =>
    Math.round((seen[Math.min(seen.length - 1, Math.floor(seen.length * part))] ?? 0) * 10) / 10;
  return { frames: seen.length, median: at(0.5), p95: at(0.95), longest: at(1) };
}

test("5,000 machines: the map, a filter, the keyboard, a storm of changes, the table", async (context) => {
  const total = standin.rows.length;
  assert.ok(total >= 5_000, `${total} machines`);
  const report = { machines: total };
  const shown = total.toLocaleString("en");
  const opened = Date.now();
  const { page, context: tab, complaints } = await open(browser, standin.url, { token: TOKENS.editor });
  await page.locator("#shown", { hasText: `${shown} machines` }).waitFor();
  report.openedMs = Date.now() - opened;
  assert.equal(await page.locator(".square").count(), total);
  await page.locator("#connection.is-live").waitFor();

  report.searchMs = await drawn(
    page,
    () => page.locator("#search").fill("worker-b"),
    () => page.locator("#shown", { hasText: "209 machines match" }).waitFor(),
  );
  report.showAllMs = await drawn(
    page,
    () => page.getByRole("button", { name: "Show all" }).click(),
    () => page.locator("#shown", { hasText: `${shown} machines` }).waitFor(),
  );

  await page.locator(".square").first().focus();
  report.arrowKeys = await frames(page, async () => {
    for (let presses = 0; presses < 30; presses += 1)
      await page.keyboard.press(presses % 3 === 0 ? "ArrowDown" : "ArrowRight");
  });
  assert.ok(await page.evaluate(() => document.activeElement.classList.contains("square")));

  report.scroll = await frames(page, async () => {
    for (let turns = 0; turns < 20; turns += 1) await page.mouse.wheel(0, 200);
  });

  const zone = standin.rows.filter((row) => row.zone === "eu-west-1c" && row.state === "well");
  report.zoneFails = await frames(page, async () => {
    standin.change(zone, "down");
    await page.waitForFunction(
      (count) => document.querySelectorAll(".square.is-down").length >= count,
      zone.length,
    );
  });
  report.zoneFailsMachines = zone.length;

  report.tableMs = await drawn(
    page,
    () => page.getByRole("button", { name: "Table" }).click(),
    () => page.locator("tbody tr").nth(99).waitFor(),
  );
  assert.equal(await page.locator("tbody tr").count(), 100, "the table shows a page, not the fleet");
  report.nextPageMs = await drawn(
    page,
    () => page.getByRole("button", { name: "Next" }).click(),
    () => page.getByText("Page 2").waitFor(),
  );
  report.heapMB = await page.evaluate(() => Math.round(performance.memory.usedJSHeapSize / 1e6));
  assert.deepEqual(complaints, []);
  context.diagnostic(`measured (a frame has 16.7 ms at 60 a second): ${JSON.stringify(report)}`);
  await tab.close();
});
