export { defaultWatcherConfig, type WatcherConfig } from "./config.ts";
export { Watcher } from "./watcher.ts";
