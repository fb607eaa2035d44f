// Does the page do what a reader needs, in a real browser? Against the stand-in (see tests/standin/server.mjs).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { launch, open } from "../chromium.mjs";
import { startStandin, TOKENS } from "../standin/server.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** A stand-in of its own and a page on it; at the end nothing may have been complained of, and no other host asked. */
async function withPage(options, run) {
  const standin = await startStandin(options.fleet);
  const opened = await open(browser, standin.url, { token: TOKENS.editor, ...options });
  try {
    await run({ standin, ...opened });
    const allowed = options.complaints ?? /$^/;
    assert.deepEqual(
      opened.complaints.filter((complaint) => !allowed.test(complaint)),
      [],
      "what the console says",
    );
    assert.deepEqual([...opened.hosts], [new URL(standin.url).host], "the hosts that were asked");
  } finally {
    await opened.context.close();
    await standin.close();
  }
}

const live = (page) => page.locator("#connection.is-live").waitFor();
/** Of requests that cannot be answered, the browser itself says so. */
const BROWSER_SAYS = /Failed to load resource/;

describe("signing in", () => {
  test("without a token the page asks for one, and keeps it for this tab only", () =>
    withPage({ token: undefined }, async ({ page, context }) => {
      await page.getByLabel("Token").fill(`  ${TOKENS.editor}\n`);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: /machines are well/ }).waitFor();
      assert.equal(await page.evaluate(() => sessionStorage.getItem("machinist-token")), TOKENS.editor);
      assert.equal(await page.evaluate(() => Object.keys(localStorage).length), 0);
      assert.deepEqual(await context.cookies(), []);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      assert.equal(await page.evaluate(() => sessionStorage.getItem("machinist-token")), null);
    }));

  test("a token behind the address is taken, and taken out of the address", () =>
    withPage({ path: "/plan" }, async ({ page }) => {
      await page.getByRole("heading", { name: "Plan", level: 1 }).waitFor();
      assert.equal(new URL(page.url()).hash, "");
      assert.equal(new URL(page.url()).pathname, "/plan");
    }));

  test("a token that is not taken brings the form back, with the reason", () =>
    withPage({ token: "nonsense", complaints: BROWSER_SAYS }, async ({ page }) => {
      const alert = page.getByRole("alert");
      await alert.waitFor();
      assert.match(
        await alert.innerText(),
        /The token was not accepted\. the API server does not know this token/,
      );
      await page.getByLabel("Token").waitFor();
    }));

  test("who may not look is told what is lacking, and may use another token", () =>
    withPage({ token: TOKENS.stranger, complaints: BROWSER_SAYS }, async ({ page }) => {
      const alert = page.getByRole("alert");
      await alert.waitFor();
      assert.match(await alert.innerText(), /may not list machines.*ask for the role machinist-viewer/s);
      await page.getByRole("button", { name: "Use another token" }).click();
      await page.getByLabel("Token").waitFor();
    }));
});

describe("live", () => {
  test("a stopped instance appears by itself: on the map, in the list, in the title, and is spoken", () =>
    withPage({}, async ({ page, standin }) => {
      await live(page);
      const name = standin.rows.find((row) => row.pool === "batch-b" && row.state === "well").name;
      const square = page.getByRole("link", { name: `${name}: Well` });
      await square.waitFor();
      standin.stopInstance(name);
      await page.getByRole("link", { name: `${name}: Down` }).waitFor();
      await page.locator(".attention").getByRole("link", { name }).waitFor();
      await page.waitForFunction(() => document.title.startsWith("(4 down)"));
      await page.locator("#spoken", { hasText: "4 are down" }).waitFor({ state: "attached" });
    }));

  test("with a filter the operator says what matches, also after a change", () =>
    withPage({ path: "/?state=down" }, async ({ page, standin }) => {
      await live(page);
      await page.locator("#shown", { hasText: "3 machines match" }).waitFor();
      const name = standin.rows.find((row) => row.pool === "batch-b").name;
      standin.stopInstance(name);
      await page.locator("#shown", { hasText: "4 machines match" }).waitFor();
    }));

  test("a lost connection is said at once and plainly; when it is back, nothing was missed", () =>
    withPage({ complaints: /ERR_|Failed to load/ }, async ({ page, standin }) => {
      await live(page);
      const name = standin.rows.find(
        (row) => row.pool === "worker-c" && row.state === "well" && !row.drift,
      ).name;
      await page.getByRole("link", { name: `${name}: Well` }).waitFor();
      standin.goAway();
      const banner = page.locator("#banner");
      await banner.waitFor();
      assert.match(await banner.innerText(), /The connection is gone since/);
      assert.equal(await page.locator("#connection").innerText(), "Not live");
      await page.locator("#spoken", { hasText: "is lost" }).waitFor({ state: "attached" });
      await page.getByRole("button", { name: "Try now" }).click();
      standin.stopInstance(name);
      standin.comeBack();
      await live(page);
      assert.match(await banner.innerText(), /The connection is back/);
      await page.getByRole("link", { name: `${name}: Down` }).waitFor();
    }));
});

describe("drift", () => {
  test("what is open comes first with its cause, and what is over stays told with what was done", () =>
    withPage({ path: "/drift" }, async ({ page, standin }) => {
      const { name } = standin.troubles.stopped;
      await page.locator("#open .card", { hasText: name }).getByText("User initiated").waitFor();
      const over = page.locator("#over .card");
      await over.getByText("runs again, as was decided").waitFor();
      assert.equal(await over.locator(".chip").innerText(), "over");
      assert.equal(await page.locator("#open .card", { hasText: "over" }).count(), 0);
    }));
});

describe("a machine", () => {
  test("what differs between machine, instance and node is marked and said", () =>
    withPage({}, async ({ page, standin }) => {
      const { name } = standin.troubles.stopped;
      await page.getByRole("link", { name: `${name}: Down` }).click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      assert.equal(new URL(page.url()).pathname, `/machines/${name}`);
      const row = page.getByRole("row", { name: /^Runs/ });
      assert.match(await row.innerText(), /≠.*Running\s+stopped\s+NotReady/s);
      await page.getByText("the machine is Running and its instance is stopped").waitFor();
      await page
        .getByRole("region", { name: "Timeline" })
        .getByText("the instance was stopped by a user")
        .waitFor();
      await page.goBack();
      await page.getByRole("heading", { name: /machines are well/ }).waitFor();
    }));

  test("a budget that blocks the drain is named, with its pods", () =>
    withPage({}, async ({ page, standin }) => {
      await page.goto(`${standin.url}/machines/${standin.troubles.draining.name}`);
      const budget = page.locator(".card", { hasText: "shop/cart" });
      await budget.waitFor();
      assert.match(await budget.innerText(), /none may go now/);
      await page.getByRole("row", { name: /shop\/cart-5 blocks the drain/ }).waitFor();
    }));

  test("a machine that does not exist is said to be so", () =>
    withPage({ path: "/machines/nobody", complaints: BROWSER_SAYS }, async ({ page }) => {
      await page.getByText("There is no machine of this name").waitFor();
    }));
});

describe("the plan", () => {
  test("an approval is asked for, sent, and seen", () =>
    withPage({ path: "/plan" }, async ({ page, standin }) => {
      await live(page);
      const { name } = standin.troubles.retiring;
      const card = page.locator("#stuck-entries .card", { hasText: name });
      await card.getByRole("button", { name: `Approve: ${name}` }).click();
      const dialog = page.getByRole("dialog");
      assert.match(await dialog.innerText(), /is replaced at Sat 7 Nov, 22:00 in window saturdays/);
      await dialog.getByRole("button", { name: "Approve" }).click();
      await page
        .getByRole("status")
        .filter({ hasText: `the maintenance of ${name} is approved` })
        .waitFor();
      await card.waitFor({ state: "detached" });
      assert.deepEqual(standin.posts, [{ path: `/api/v1/machines/${name}/approve`, body: {} }]);
      await page.getByRole("row", { name }).getByText("approved", { exact: true }).waitFor();
    }));

  test("pause asks why, and everybody sees it; resume takes it back", () =>
    withPage({ path: "/plan" }, async ({ page, standin }) => {
      await live(page);
      await page.getByRole("button", { name: "Pause …" }).click();
      await page.locator("#pause-place").selectOption("pool worker-b");
      await page.getByLabel(/Why\?/).fill("a release is out");
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByText(/Paused: pool worker-b.*a release is out/).waitFor();
      await page.getByRole("button", { name: "Resume: pool worker-b" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
      await page.getByText("a release is out").waitFor({ state: "detached" });
      assert.deepEqual(
        standin.posts.map(({ path, body }) => [path, body.place, body.name]),
        [
          ["/api/v1/pause", "pool", "worker-b"],
          ["/api/v1/resume", "pool", "worker-b"],
        ],
      );
    }));

  test("postpone sends the moment that was chosen", () =>
    withPage({ path: "/plan" }, async ({ page, standin }) => {
      await live(page);
      const { name } = standin.troubles.retiring;
      await page
        .locator("#stuck-entries")
        .getByRole("button", { name: `Postpone: ${name}` })
        .click();
      await page.getByLabel(/Begin no earlier than/).fill("2026-11-08T22:30");
      await page.getByRole("dialog").getByRole("button", { name: "Postpone" }).click();
      await page.locator("#stuck-entries").getByText("postponed until Sun 8 Nov, 22:30").waitFor();
      assert.deepEqual(standin.posts[0].body, { until: "2026-11-08T21:30:00Z" });
    }));

  test("what-if shows another plan, says that nothing is saved, and goes away", () =>
    withPage({ path: "/plan" }, async ({ page, standin }) => {
      await live(page);
      const { name } = standin.troubles.late;
      await page.getByRole("button", { name: "What if …" }).click();
      await page.locator("#try-policy").selectOption("nights");
      await page.getByRole("button", { name: "Add a window" }).click();
      await page.getByRole("button", { name: "Add an event" }).click();
      await page.getByLabel("Machine", { exact: true }).fill("batch-a-gjgs8");
      await page.getByRole("button", { name: "See what would change" }).click();
      await page.getByRole("heading", { name: "A trial: nothing is saved" }).waitFor();
      await page.locator("#trial-summary", { hasText: "0 would be late, now 1" }).waitFor();
      const changes = page.locator(".changes");
      assert.match(await changes.innerText(), new RegExp(`earlier\\s+${name}`));
      assert.match(await changes.innerText(), /new\s+batch-a-gjgs8/);
      await page.getByRole("button", { name: "Back to the real plan" }).click();
      await page.locator("#stuck-entries .card", { hasText: name }).getByText("late").waitFor();
      assert.deepEqual(
        standin.posts.map((post) => post.path),
        ["/api/v1/what-if"],
      );
    }));

  test("a window that cannot be read is refused in the operator's words", () =>
    withPage({ path: "/plan", complaints: BROWSER_SAYS }, async ({ page }) => {
      await page.getByRole("button", { name: "What if …" }).click();
      await page.locator("#try-policy").selectOption("nights");
      await page.getByLabel(/^When/).fill("nonsense");
      await page.getByRole("button", { name: "See what would change" }).click();
      await page.getByText(/is no cron schedule: five fields are wanted/).waitFor();
    }));

  test("who may only look sees everything, and buttons that say why they do nothing", () =>
    withPage({ path: "/plan", token: TOKENS.reader }, async ({ page, standin }) => {
      await live(page);
      const { name } = standin.troubles.retiring;
      const button = page.locator("#stuck-entries").getByRole("button", { name: `Approve: ${name}` });
      assert.equal(await button.getAttribute("aria-disabled"), "true");
      await button.focus();
      assert.match(
        await page.getByRole("tooltip").innerText(),
        /your user may not patch machinemaintenances/,
      );
      await page.keyboard.press("Enter");
      assert.equal(await page.getByRole("dialog").count(), 0);
      assert.deepEqual(standin.posts, []);
    }));
});

describe("keyboard only", () => {
  test("from the address bar to a machine and on to the plan, without a pointer", () =>
    withPage({}, async ({ page, standin }) => {
      await live(page);
      await page.locator(".square").first().waitFor();
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
      // Exactly one square is in the tab order; arrows go on from there.
      assert.equal(await page.locator('.square[tabindex="0"]').count(), 1);
      const isOnSquare = () => page.evaluate(() => document.activeElement.classList.contains("square"));
      for (let presses = 0; presses < 80 && !(await isOnSquare()); presses += 1)
        await page.keyboard.press("Tab");
      assert.ok(await isOnSquare(), "the map is in reach of the tab key");
      const focused = () => page.evaluate(() => document.activeElement.getAttribute("href"));
      const first = await focused();
      await page.keyboard.press("ArrowRight");
      const second = await focused();
      assert.notEqual(second, first);
      assert.match(await page.getByRole("tooltip").innerText(), /batch-a-/);
      await page.keyboard.press("ArrowDown");
      assert.match(await focused(), /worker-a-/, "down goes to the row below, in the same zone");
      await page.keyboard.press("End");
      assert.equal(await focused(), "/machines/master-2");
      await page.keyboard.press("Home");
      assert.equal(await focused(), first);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: first.split("/").at(-1), level: 1 }).waitFor();
      await page.keyboard.press("g");
      await page.keyboard.press("p");
      await page.getByRole("heading", { name: "Plan", level: 1 }).waitFor();
      await page.locator(".bar").first().focus();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: standin.troubles.draining.name, level: 1 }).waitFor();
      await page.keyboard.press("/");
      await page.waitForFunction(() => document.activeElement.id === "search");
      await page.keyboard.type("batch-c");
      await page.locator("#shown", { hasText: "6 machines match" }).waitFor();
    }));

  test("the list of shortcuts opens, closes, and can turn them off", () =>
    withPage({}, async ({ page }) => {
      await live(page);
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
      await page.getByLabel(/Turn the single-letter shortcuts off/).check();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await page.keyboard.press("?");
      assert.equal(await page.getByRole("dialog").count(), 0);
    }));
});

describe("the look", () => {
  test("light and dark follow the system, and the switch wins and lasts", () =>
    withPage({ scheme: "dark" }, async ({ page }) => {
      await live(page);
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const dark = await ground();
      await page.getByRole("button", { name: "Switch between light and dark" }).click();
      const light = await ground();
      assert.notEqual(light, dark);
      await page.reload();
      await live(page);
      assert.equal(await ground(), light);
    }));

  for (const width of [360, 768, 3840]) {
    test(`at ${width} px nothing has to be scrolled sideways`, () =>
      withPage({ width, height: width === 3840 ? 2160 : 740 }, async ({ page, standin }) => {
        const { stopped, draining } = standin.troubles;
        const machine = "#differences";
        const views = [
          ["/", ".square"],
          ["/?as=table", "tbody tr"],
          [`/machines/${stopped.name}`, machine],
          [`/machines/${draining.name}`, machine],
          ["/plan", ".bar"],
          ["/drift", ".drift .card"],
        ];
        for (const [path, ready] of views) {
          await page.goto(`${standin.url}${path}`);
          await page.locator(ready).first().waitFor();
          if (path === "/plan") await page.getByRole("button", { name: "What if …" }).click();
          const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
          assert.ok(wide <= shown, `${path} is ${wide} px wide`);
        }
      }));
  }
});
