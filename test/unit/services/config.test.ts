import { describe, expect, it } from "vitest";
import { readConfig } from "../../../services/config.ts";
import { setting } from "../../../services/setting.ts";

const read = (env: Record<string, string>) => readConfig(env, "orchestrator").config;

describe("readConfig", () => {
  it("has a default for everything but the address", () => {
    expect(read({})).toMatchObject({
      nats: { url: undefined },
      prefix: "",
      partitions: 16,
      replicas: 1,
      history: { layout: "per-instance", maxOwnStreams: 2000, shards: 16 },
      logLevel: "info",
      appPath: undefined,
    });
  });

  it("reads what is set, and takes an empty variable for an unset one", () => {
    const config = read({
      NATS_URL: "nats://a:4222",
      HOLDFAST_PREFIX: "blue",
      HOLDFAST_PARTITIONS: "4",
      HISTORY_LAYOUT: "shared",
      LOG_LEVEL: "",
    });
    expect(config).toMatchObject({
      nats: { url: "nats://a:4222" },
      prefix: "blue",
      partitions: 4,
      logLevel: "info",
    });
    expect(config.history.layout).toBe("shared");
    expect(Object.isFrozen(config)).toBe(true);
  });

  it.each([
    "nats://127.0.0.1:4222",
    "localhost",
    "a:4222, b:4222",
    "tls://me:secret@nats.example.org:4222/",
    "nats://[::1]:4222",
  ])("takes %s for an address", (url) => {
    expect(read({ NATS_URL: url }).nats.url).toBe(url);
  });

  it.each([
    [{ NATS_URL: "banana:://x" }, /NATS_URL="banana:.*" must be an address like nats:/],
    [{ NATS_URL: "http://me:secret@b" }, /NATS_URL="http:\/\/\*\*\*@b" must be an address/],
    [{ NATS_URL: "nats://a:4222,http://b" }, /NATS_URL=.* must be an address like nats:/],
    [{ HOLDFAST_PARTITIONS: "0" }, /HOLDFAST_PARTITIONS="0" must be a whole number from 1 to 1024/],
    [{ HOLDFAST_PARTITIONS: "4.5" }, /HOLDFAST_PARTITIONS/],
    [{ HISTORY_LAYOUT: "both" }, /HISTORY_LAYOUT="both" must be one of per-instance, shared/],
    [{ HOLDFAST_PREFIX: "a.b" }, /HOLDFAST_PREFIX="a.b" must be empty or 1 to 128/],
    [{ LOG_LEVEL: "loud" }, /LOG_LEVEL="loud"/],
    [{ HOLDFAST_PARTITION: "4" }, /unknown setting HOLDFAST_PARTITION/],
    [{ HOLDFAST_ORCHESTRATOR_SPEED: "9" }, /unknown setting HOLDFAST_ORCHESTRATOR_SPEED/],
    [{ NATS_TOKEN: "t", NATS_CREDS: "/c" }, /NATS_TOKEN and NATS_CREDS are set together/],
    [{ NATS_USER: "me" }, /NATS_USER and NATS_PASSWORD belong together/],
    [{ HISTORY_LAYOT: "shared" }, /unknown setting HISTORY_LAYOT$/],
    [{ NATS_REPLICA: "3" }, /unknown setting NATS_REPLICA \(NATS_REPLICAS\?\)/],
    [{ LOG_LEEVL: "info" }, /LOG_LEEVL \(LOG_LEVEL\?\)/],
    [{ NATS_REPLICA: "3", NATS_REPLICAS: "" }, /NATS_REPLICA \(NATS_REPLICAS\?\)/],
    [{ DEPLOY_WORKER: "4" }, /DEPLOY_WORKER \(DEPLOY_WORKERS\?\)/],
  ])("refuses %o by name", (env, message) => {
    expect(() => read(env)).toThrow(message);
  });

  it("names every fault at once", () => {
    expect(() => read({ NATS_REPLICAS: "9", HISTORY_SHARDS: "no" })).toThrow(/NATS_REPLICAS.*HISTORY_SHARDS/);
  });

  it("refuses what begins like the asking service's own and is none of them", () => {
    const own = { WATCHER_GRACE: setting.text.optional() };
    expect(() => readConfig({ WATCHER_GRACES: "1s" }, "watcher", own)).toThrow(
      /unknown setting WATCHER_GRACES$/,
    );
    expect(() => readConfig({ GATEWAY_PROT: "1", WORKER_X: "1" }, "watcher", own)).not.toThrow();
  });

  it("lets names of others be that are near a setting that is set, or far from any", () => {
    const env = {
      NATS_URL: "nats://a",
      NATS_URI: "nats://b",
      NATS_SERVICE_HOST: "10.0.0.1",
      NATS_HOME: "/n",
    };
    expect(read(env).nats.url).toBe("nats://a");
  });

  it("lets the settings of other services pass and parses the service's own", () => {
    const env = { HOLDFAST_WORKER_TAGS: "gpu, big", HOLDFAST_GATEWAY_PORT: "80" };
    expect(() => readConfig(env, "watcher")).not.toThrow();
    const { settings } = readConfig(env, "worker", { HOLDFAST_WORKER_TAGS: setting.list.default([]) });
    expect(settings.HOLDFAST_WORKER_TAGS).toEqual(["gpu", "big"]);
  });
});
