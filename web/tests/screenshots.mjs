// What does each view look like? Writes docs/page/*.png, light and dark, from the stand-in's fixed fleet.
//
//   node tests/screenshots.mjs [FOLDER]
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open } from "./chromium.mjs";
import { shrink } from "./png.mjs";
import { startStandin, TOKENS } from "./standin/server.mjs";

const folder = process.argv[2] ?? fileURLToPath(new URL("../../docs/page", import.meta.url));
await mkdir(folder, { recursive: true });
const standin = await startStandin();
const browser = await launch();
const { stopped, draining } = standin.troubles;

const VIEWS = [
  { name: "login", path: "/", token: undefined, ready: "#token" },
  { name: "fleet", path: "/", ready: ".square" },
  { name: "machine", path: `/machines/${stopped.name}`, ready: "#differences" },
  { name: "drain", path: `/machines/${draining.name}`, ready: "#differences" },
  { name: "plan", path: "/plan", ready: ".bar" },
  { name: "what-if", path: "/plan", ready: ".bar", prepare: tryAWindow },
  { name: "drift", path: "/drift", ready: ".drift .card" },
];

async function tryAWindow(page) {
  await page.getByRole("button", { name: "What if …" }).click();
  await page.locator("#try-policy").selectOption("nights");
  await page.getByRole("button", { name: "Add a window" }).click();
  await page.getByRole("button", { name: "See what would change" }).click();
  await page.locator("#trial").waitFor();
  await page.locator("#trial").scrollIntoViewIfNeeded();
}

for (const scheme of ["light", "dark"]) {
  for (const view of VIEWS) {
    const token = "token" in view ? view.token : TOKENS.editor;
    const { context, page } = await open(browser, standin.url, { token, path: view.path, scheme });
    await page.locator(view.ready).first().waitFor();
    await view.prepare?.(page);
    if (token) await page.locator("#connection.is-live").waitFor();
    await writeFile(join(folder, `${view.name}-${scheme}.png`), shrink(await page.screenshot()));
    await context.close();
  }
}
await browser.close();
await standin.close();
