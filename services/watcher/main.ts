import { pathToFileURL } from "node:url";
import { runWatcher } from "./run-watcher.ts";

export { runWatcher };

// The command line also imports this module and starts the watcher itself.
if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) void runWatcher(process.env);
