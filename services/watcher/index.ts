export { defaultWatcherConfig, type WatcherConfig } from "./config.ts";
export type { Histories } from "./deps.ts";
export { runWatcher } from "./run-watcher.ts";
export { Watcher, type WatcherOptions } from "./watcher.ts";
