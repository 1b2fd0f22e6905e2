import { expect, test } from "vitest";
import { readConfig } from "../../../services/config.ts";
import { defaultWatcherConfig, watcherConfig, watcherSettings } from "../../../services/watcher/config.ts";

const read = (env: Record<string, string>) =>
  watcherConfig(readConfig(env, "watcher", watcherSettings).settings);

test("nothing set: the defaults", () => {
  expect(read({})).toEqual(defaultWatcherConfig);
});

test("durations as people write them", () => {
  const config = read({ WATCHER_LEASE_TTL: "5s", RETAIN_FOR: "0", ARCHIVE_AFTER: "2h" });
  expect(config).toMatchObject({ leaseTtlMs: 5000, retainForMs: 0, archiveAfterMs: 7_200_000 });
});

test.each([
  ["WATCHER_LEASE_TTL", "1500ms", "whole seconds"],
  ["WATCHER_LEASE_TTL", "500ms", "from 1000 to"],
  ["WATCHER_GRACE", "soon", "must be a duration"],
  ["RETAIN_FOR", "-1d", "must be a duration"],
  ["WATCHER_SWEEP_LIMIT", "0", "whole number"],
])("%s=%s is refused by name", (name, value, why) => {
  expect(() => read({ [name]: value })).toThrow(name);
  expect(() => read({ [name]: value })).toThrow(why);
});
