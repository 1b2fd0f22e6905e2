import { HistoryStore } from "../../shared/history/index.ts";
import type { Environment } from "../config.ts";
import { runService } from "../run-service.ts";
import { watcherConfig, watcherSettings } from "./config.ts";
import { Watcher } from "./watcher.ts";

/** Resolves when the watcher has stopped after a signal. */
export function runWatcher(env: Environment): Promise<void> {
  return runService(
    env,
    "watcher",
    ({ id, bus, names, runtime, config, settings, fleet }) => {
      const { layout, maxOwnStreams, shards } = config.history;
      const { replicas } = config;
      const histories = new HistoryStore({ bus, names, runtime, layout, maxOwnStreams, shards, replicas });
      const own = watcherConfig(settings);
      return new Watcher({ id, bus, names, runtime, config: own, histories, generation: fleet });
    },
    { settings: watcherSettings },
  );
}
