import { expect, it } from "vitest";
import { readConfig } from "../../../services/config.ts";
import { refuseUnknownNames, refuseUnknownSettings, workerConfig } from "../../../services/worker/config.ts";
import { createIdentity } from "../../../services/worker/identity.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { collectApp, defineActivity } from "../../../shared/definitions/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";

const configOf = (env: Record<string, string>) => {
  refuseUnknownSettings(env);
  return workerConfig(readConfig(env, "worker", workerSettings).settings);
};

it("has defaults for everything", () => {
  expect(configOf({})).toMatchObject({
    tags: [],
    activities: { slots: 100, queues: undefined, ackWaitMs: 10_000, maxDeliveries: 5, surplusWaitMs: 500 },
    sessions: { max: 32, leaseTtlMs: 15_000, idleTimeoutMs: 300_000 },
    drainTimeoutMs: 30_000,
  });
});

it("reads lists, amounts and durations", () => {
  const env = {
    WORKER_TAGS: "gpu, fast",
    WORKER_RESOURCES: "vram=24,cores=1.5",
    WORKER_ACK_WAIT: "2s",
    WORKER_QUEUES: "a,b",
    WORKER_MAX_TOTAL_SESSIONS: "40",
    WORKER_NODE_ID: "",
  };
  expect(configOf(env)).toMatchObject({
    nodeId: undefined,
    tags: ["gpu", "fast"],
    resources: { vram: 24, cores: 1.5 },
    activities: { ackWaitMs: 2000, queues: ["a", "b"] },
    sessions: { maxTotal: 40 },
  });
});

it.each([
  [{ WORKER_ACTIVITY_SLOT: "1" }, "unknown setting WORKER_ACTIVITY_SLOT"],
  [{ WORKER_ACTIVITY_SLOTS: "-1" }, "WORKER_ACTIVITY_SLOTS"],
  [{ WORKER_ACTIVITY_SLOTS: "many" }, "WORKER_ACTIVITY_SLOTS"],
  [{ WORKER_QUEUES: "a b" }, "WORKER_QUEUES"],
  [{ WORKER_QUEUES: "," }, "WORKER_QUEUES"],
  [{ WORKER_RESOURCES: "vram" }, "WORKER_RESOURCES"],
  [{ WORKER_LEASE_TTL: "1500ms" }, "WORKER_LEASE_TTL"],
  [{ WORKER_LEASE_TTL: "500ms" }, "WORKER_LEASE_TTL"],
  [{ WORKER_DRAIN_TIMEOUT: "1d" }, "WORKER_DRAIN_TIMEOUT"],
  [{ WORKER_ACK_WAIT: "soon" }, "WORKER_ACK_WAIT"],
  [{ WORKER_NODE_ID: "a.b" }, "WORKER_NODE_ID"],
  // Defect 41: the rule that is documented is the rule that is checked.
  [{ WORKER_NODE_ID: "x".repeat(65) }, "must be 1 to 64 characters"],
  [{ WORKER_ACTIVITY_SLOTS: "0", WORKER_MAX_SESSIONS: "0" }, "WORKER_ACTIVITY_SLOTS and WORKER_MAX_SESSIONS"],
  [{ WORKER_ACTIVITY_SLOTS: "0", WORKER_ACTIVITIES: "a" }, "WORKER_ACTIVITY_SLOTS and WORKER_ACTIVITIES"],
  [{ WORKER_ACTIVITY_SLOTS: "0", WORKER_QUEUES: "a" }, "WORKER_ACTIVITY_SLOTS and WORKER_QUEUES"],
  [{ WORKER_MAX_SESSIONS: "0", WORKER_SESSION_TYPES: "a" }, "WORKER_MAX_SESSIONS and WORKER_SESSION_TYPES"],
  [{ WORKER_MAX_SESSIONS: "2", WORKER_MAX_PER_TYPE: "a=3" }, "WORKER_MAX_PER_TYPE and WORKER_MAX_SESSIONS"],
  [{ WORKER_MAX_TOTAL_SESSIONS: "0" }, "WORKER_MAX_TOTAL_SESSIONS"],
  [{ WORKER_MAX_TOTAL_SESSIONS: "-2" }, "WORKER_MAX_TOTAL_SESSIONS"],
  [{ WORKER_MAX_TOTAL_SESSIONS: "2.5" }, "WORKER_MAX_TOTAL_SESSIONS"],
  [{ WORKER_STOP_GRACE: "30s" }, "WORKER_DRAIN_TIMEOUT and WORKER_STOP_GRACE"],
  [{ WORKER_REGISTER_EVERY: "10s" }, "WORKER_REGISTER_EVERY and WORKER_REGISTER_TTL"],
] satisfies [Record<string, string>, string][])("refuses %j by name", (env, name) => {
  expect(() => configOf(env)).toThrow(name);
});

it("refuses names the application does not have", () => {
  const app = collectApp({ here: defineActivity("here", { run: () => null }) });
  const check = (env: Record<string, string>) => refuseUnknownNames(configOf(env), app);
  expect(() => check({ WORKER_ACTIVITIES: "here" })).not.toThrow();
  expect(() => check({ WORKER_ACTIVITIES: "there" })).toThrow("WORKER_ACTIVITIES names there");
  expect(() => check({ WORKER_SESSION_TYPES: "bare" })).not.toThrow();
  expect(() => check({ WORKER_SESSION_TYPES: "gone" })).toThrow("WORKER_SESSION_TYPES names gone");
});

it("makes another worker of the same node at every start (S3)", () => {
  const machine = { host: "gpu-1.example.org", pid: 7 };
  const settings = { nodeId: "node-1", resourceId: undefined, buildId: "b1" };
  const first = createIdentity(settings, machine, seededRandom(1));
  const second = createIdentity(settings, machine, seededRandom(2));
  expect(first.nodeId).toBe(second.nodeId);
  expect(first.workerId).not.toBe(second.workerId);
  expect(first.resourceId, "by default the node's own").toBe("node-1");
  const made = createIdentity({ ...settings, nodeId: undefined }, machine, seededRandom(3));
  expect(made.workerId).toMatch(/^gpu-1-example-org-\w{4}-\w{10}$/);
  const tooLong = { ...settings, nodeId: "n".repeat(65) };
  expect(() => createIdentity(tooLong, machine, seededRandom(4))).toThrow("1 to 64 characters");
});
