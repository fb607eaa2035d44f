// How is the page built? One script and one style sheet, nothing inlined: the page runs under a content security
// policy of `default-src 'self'`, which forbids inline script, inline style and data: addresses alike.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  build: {
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: ["chrome123", "firefox128", "safari17.5"],
    sourcemap: false,
  },
});
