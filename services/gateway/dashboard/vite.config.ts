import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "/",
  // Automatic JSX for preact comes from tsconfig.json.
  build: {
    outDir: "../../../dist/dashboard",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy forbids inline scripts and data: scripts; everything is a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { "/api": "http://127.0.0.1:4440" } },
});
