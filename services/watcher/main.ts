import { pathToFileURL } from "node:url";
import { runWatcher } from "./run-watcher.ts";

export { runWatcher };

// The command line loads this file too and starts it itself.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await runWatcher(process.env);
