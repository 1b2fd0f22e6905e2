#!/usr/bin/env node
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Whoever reads our output may have seen enough.
process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));

const built = new URL("../dist/services/cli/main.js", import.meta.url);
if (process.argv[2] === "health" && process.argv.length === 3) {
  // Containers ask every few seconds: without loading the rest it costs a sixth.
  const { askHealth } = await import(new URL("../dist/services/health.js", import.meta.url).href);
  process.exitCode = await askHealth(process.env, process.stdout);
} else if (existsSync(fileURLToPath(built))) {
  const { main } = await import(built.href);
  process.exitCode = await main(process.argv.slice(2), process.env);
  // What a user's code left running must not keep a finished command alive.
  setTimeout(() => process.exit(), 1000).unref();
} else {
  process.stderr.write("holdfast: it is not built yet; run `npm run build` first\n");
  process.exitCode = 2;
}
