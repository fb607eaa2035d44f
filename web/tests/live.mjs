// What does a reader see and do on the page of a real operator? Run by crates/cli/tests/e2e/page_browser.rs.
//
//   node tests/live.mjs URL EDITORS_TOKEN READERS_TOKEN MACHINE...
//
// What only the world outside of the browser can do is asked for by a line `ask WORDS`; the answer is a line of JSON.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { violations } from "./axe.mjs";
import { launch, open } from "./chromium.mjs";

/** Real machines take their time, and the cores may be busy with something else. */
const PATIENCE = 240_000;

const [url, editor, reader, ...machines] = process.argv.slice(2);
const [first, second, third] = machines;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function ask(words) {
  console.log(`ask ${words}`);
  const { value, done } = await lines.next();
  if (done) throw new Error(`nobody answers ${words}`);
  return JSON.parse(value);
}

const steps = [];
const step = (name, run) => steps.push({ name, run });

const browser = await launch();
const { page, complaints } = await open(browser, url, { token: editor });
page.setDefaultTimeout(PATIENCE);
const live = () => page.locator("#connection.is-live").waitFor();
const square = (machine, state) => page.locator(`.square.is-${state}[href="/machines/${machine}"]`);

step("loads: every machine is on the map, and the page is live", async () => {
  await live();
  for (const machine of machines) await square(machine, "well").waitFor();
  assert.equal(await page.locator(".square").count(), machines.length);
  assert.equal(new URL(page.url()).hash, "", "the token is no longer in the address");
  assert.deepEqual(await violations(page), []);
});

step("a connection that is lost is said, and back when the operator is", async () => {
  await ask("kill-operator");
  await page.locator("#banner.is-bad").waitFor();
  assert.match(await page.locator("#banner").innerText(), /The connection is gone since/);
  // What the browser says of an operator that is gone is no fault of the page.
  await ask("start-operator");
  await live();
  for (const machine of machines) await square(machine, "well").waitFor();
  complaints.splice(0);
});

step("a stopped instance appears by itself", async () => {
  await ask(`stop ${first}`);
  await square(first, "down").waitFor();
  await page.locator(".attention").getByRole("link", { name: first }).waitFor();
  await square(first, "down").click();
  await page.locator("#differences", { hasText: "difference" }).waitFor();
  // First it is stopping, and then it is.
  await page.locator("table.views", { hasText: "stopped" }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: /^Drift/ }).click();
  await page
    .locator(".drift .card", { hasText: first })
    .getByText(/stopped/)
    .first()
    .waitFor();
  assert.deepEqual(await violations(page), []);
});

step("and so does that it runs again", async () => {
  await page.getByRole("link", { name: /^Fleet/ }).click();
  await ask(`start ${first}`);
  await square(first, "well").waitFor();
});

step("a retirement is scheduled, and shows in the plan", async () => {
  await page.getByRole("link", { name: /^Plan/ }).click();
  await ask(`retire ${second}`);
  const card = page.locator("#stuck-entries .card", { hasText: second });
  await card.waitFor();
  await card.getByText("to approve").waitFor();
  assert.match(await page.locator("table.entries").innerText(), /instance-retirement/);
  assert.deepEqual(await violations(page), []);
});

step("what-if changes the plan, and saves nothing", async () => {
  const before = await ask("stored");
  await page.getByRole("button", { name: "What if …" }).click();
  const policy = page.locator("#try-policy");
  await policy.locator("option").nth(1).waitFor({ state: "attached" });
  await policy.selectOption({ index: 1 });
  // From a window that is open now to one that opens on Christmas Eve only, and another machine that retires.
  await page.getByLabel(/^When/).fill("0 3 24 12 *");
  await page.getByRole("button", { name: "Add an event" }).click();
  await page.getByLabel("Machine", { exact: true }).fill(third);
  await page.getByRole("button", { name: "See what would change" }).click();
  await page.getByRole("heading", { name: "A trial: nothing is saved" }).waitFor();
  await page.locator(".changes li", { hasText: third }).waitFor();
  await page.locator("table.entries tr", { hasText: third }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Back to the real plan" }).click();
  await page.locator("table.entries tr", { hasText: third }).waitFor({ state: "detached" });
  assert.deepEqual(await ask("stored"), before);
});

step("a user without rights sees, and cannot approve", async () => {
  const other = await open(browser, url, { token: reader, path: "/plan" });
  other.page.setDefaultTimeout(PATIENCE);
  const card = other.page.locator("#stuck-entries .card", { hasText: second });
  const button = card.getByRole("button", { name: `Approve: ${second}` });
  await button.waitFor();
  assert.equal(await button.getAttribute("aria-disabled"), "true");
  await button.focus();
  assert.match(await other.page.getByRole("tooltip").innerText(), /may not|right/);
  await other.page.keyboard.press("Enter");
  assert.equal(await other.page.getByRole("dialog").count(), 0);
  assert.deepEqual(other.complaints, []);
  // Nor past the button.
  const status = await other.page.evaluate(async (machine) => {
    const answer = await fetch(`/api/v1/machines/${machine}/approve`, {
      method: "POST",
      body: "{}",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${sessionStorage.getItem("machinist-token")}`,
      },
    });
    return answer.status;
  }, second);
  assert.equal(status, 403);
  await other.context.close();
});

step("who may approves it, and it is done", async () => {
  const card = page.locator("#stuck-entries .card", { hasText: second });
  await card.getByRole("button", { name: `Approve: ${second}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await page.locator(".message").waitFor();
  assert.doesNotMatch((await page.locator(".message").getAttribute("class")) ?? "", /is-bad/);
  await page.locator("table.entries tr", { hasText: second }).getByText("under way").waitFor();
  await page.getByRole("link", { name: /^Fleet/ }).click();
  await page.locator(`.square[href="/machines/${second}"]`).waitFor({ state: "detached" });
  await page
    .locator(".square.is-well")
    .nth(machines.length - 1)
    .waitFor();
});

step("the browser had nothing to complain of", async () => {
  assert.deepEqual(complaints, []);
});

let failed = false;
for (const { name, run } of steps) {
  try {
    await run();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed = true;
    console.log(`FAILED: ${name}`);
    console.error(error);
    console.error(`the page at ${page.url()} said:\n${await page.locator("body").innerText()}`);
    console.error(`the browser complained of: ${JSON.stringify(complaints)}`);
    break;
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
