// Can everybody use the page? axe-core on every view, light and dark, wide and narrow, in every rule that it has for
// WCAG and good practice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { violations } from "../axe.mjs";
import { launch, open } from "../chromium.mjs";
import { startStandin, TOKENS } from "../standin/server.mjs";

let browser;
let standin;
before(async () => {
  standin = await startStandin();
  browser = await launch();
});
after(async () => {
  await browser.close();
  await standin.close();
});

const VIEWS = [
  { name: "sign in", path: "/", ready: "#token", token: null },
  { name: "fleet, map", path: "/", ready: ".square" },
  { name: "fleet, table", path: "/?as=table", ready: "tbody tr" },
  { name: "fleet, nothing matches", path: "/?search=nobody", ready: "#shown" },
  {
    name: "machine that is down",
    path: (troubles) => `/machines/${troubles.stopped.name}`,
    ready: "#differences",
  },
  {
    name: "machine that is drained",
    path: (troubles) => `/machines/${troubles.draining.name}`,
    ready: "#differences",
  },
  { name: "plan", path: "/plan", ready: ".bar" },
  { name: "plan, for who may only look", path: "/plan", ready: ".bar", token: TOKENS.reader },
  { name: "what-if", path: "/plan", ready: ".bar", prepare: tryAWindow },
  {
    name: "a dialog",
    path: "/plan",
    ready: ".bar",
    prepare: (page) => page.getByRole("button", { name: "Pause …" }).click(),
  },
  { name: "drift", path: "/drift", ready: ".drift .card" },
  { name: "nowhere", path: "/nowhere", ready: "main h1" },
];

async function tryAWindow(page) {
  await page.getByRole("button", { name: "What if …" }).click();
  await page.locator("#try-policy").selectOption("nights");
  await page.getByRole("button", { name: "Add a window" }).click();
  await page.getByRole("button", { name: "Add a freeze" }).click();
  await page.getByRole("button", { name: "Add an event" }).click();
  await page.getByLabel("Machine", { exact: true }).fill("batch-a-gjgs8");
  await page.getByRole("button", { name: "See what would change" }).click();
  await page.locator("#trial").waitFor();
}

for (const { scheme, width } of [
  { scheme: "light", width: 1280 },
  { scheme: "dark", width: 1280 },
  { scheme: "light", width: 360 },
]) {
  for (const view of VIEWS) {
    test(`${view.name}, ${scheme}, ${width} px`, async () => {
      const path = typeof view.path === "string" ? view.path : view.path(standin.troubles);
      const token = view.token === undefined ? TOKENS.editor : (view.token ?? undefined);
      const { page, context, complaints } = await open(browser, standin.url, { token, path, scheme, width });
      await page.locator(view.ready).first().waitFor();
      await view.prepare?.(page);
      assert.deepEqual(await violations(page), []);
      assert.deepEqual(complaints, []);
      await context.close();
    });
  }
}

test("the state of a lost connection", async () => {
  const alone = await startStandin();
  const { page, context } = await open(browser, alone.url, { token: TOKENS.editor });
  await page.locator("#connection.is-live").waitFor();
  alone.goAway();
  await page.locator("#banner").waitFor();
  assert.deepEqual(await violations(page), []);
  await context.close();
  await alone.close();
});
