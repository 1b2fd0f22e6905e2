#!/usr/bin/env node
/** The `holdfast` command: starts the built command line, or only the health check. */
import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { fileURLToPath } from "node:url";

// Node 22.8 and newer cache compiled modules on disk.
nodeModule.enableCompileCache?.();

// The reader of our output may close the pipe early, as `head` does: that is no error.
process.stdout.on("error", (error) => process.exit(error.code === "EPIPE" ? 0 : 1));

const built = new URL("../dist/services/cli/main.js", import.meta.url);
if (process.argv[2] === "health" && process.argv.length === 3) {
  // Containers check their health every few seconds: without loading the rest, a check costs a sixth.
  const { askHealth } = await import(new URL("../dist/services/health.js", import.meta.url).href);
  process.exitCode = await askHealth(process.env, process.stdout);
} else if (process.argv[2] === "worker" && ["true", "1"].includes(process.env.WORKER_SUPERVISED ?? "")) {
  // The supervisor of a worker must cost little: it loads nothing else.
  const entry = new URL("../dist/services/worker/supervise/supervisor.js", import.meta.url);
  const { superviseWorker } = await import(entry.href);
  process.exit(await superviseWorker(fileURLToPath(import.meta.url), process.argv.slice(2)));
} else if (existsSync(fileURLToPath(built))) {
  const { main } = await import(built.href);
  process.exitCode = await main(process.argv.slice(2), process.env);
  // Timers or sockets that a user's code left open must not keep a finished command alive.
  setTimeout(() => process.exit(), 1000).unref();
} else {
  process.stderr.write("holdfast: the code is not built yet; run `npm run build` first\n");
  process.exitCode = 2;
}
