// What does axe-core find wrong with a page? All of its rules, each finding as text.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const source = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function violations(page) {
  // The page's policy forbids foreign script; the test's own goes in by the debugger.
  await page.evaluate(source);
  const { violations: found } = await page.evaluate(() =>
    globalThis.axe.run(document, { resultTypes: ["violations"] }),
  );
  return found.map((one) => {
    const nodes = one.nodes.map((node) => `  ${node.html.slice(0, 160)}\n  ${node.failureSummary}`);
    return `${one.id}: ${one.help}\n${nodes.join("\n")}`;
  });
}
