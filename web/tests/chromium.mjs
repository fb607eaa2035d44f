// How do the tests get a browser? Debian's Chromium, driven by playwright-core; nothing is downloaded.
import { accessSync, constants } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

function findBrowser() {
  const wanted = process.env.CHROMIUM ? [process.env.CHROMIUM] : PLACES;
  for (const place of wanted) {
    try {
      accessSync(place, constants.X_OK);
      return place;
    } catch {}
  }
  throw new Error(
    `no Chromium at ${wanted.join(", ")}: run scripts/setup.sh browser, or say where it is with CHROMIUM`,
  );
}

export function launch() {
  // Without its sandbox, as root or in a container it would not start; it opens our own page only.
  return chromium.launch({
    executablePath: findBrowser(),
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** A page of one reader. Everything that the browser complains of is kept, for the test to look at. */
export async function open(
  browser,
  url,
  { token, path = "/", scheme = "light", width = 1280, height = 800, touch = false } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
    reducedMotion: "reduce",
    hasTouch: touch,
  });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  const hosts = new Set();
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  await page.goto(`${url}${path}${token ? `#token=${token}` : ""}`);
  return { context, page, complaints, hosts };
}
