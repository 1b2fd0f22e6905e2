/** A small installation made by hand on a real server, always the same, for the command line to look at. */
import type { Bus } from "../../../shared/bus/index.ts";
import {
  Bucket,
  connectBus,
  defaultTopology,
  encode,
  ensureTopology,
  subjects,
} from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { silent, systemRuntime } from "../../../shared/runtime/index.ts";
import { reclaimedHistory } from "../gateway/demo-world.ts";
import { hands, type WrittenHistory, writeHistory } from "../gateway/gateway.ts";

/** Not before anybody looks: what is shown relative to now is always "0 ms". */
export const later = Date.UTC(2100, 0, 1);
export const past = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

export interface CliWorld extends AsyncDisposable {
  readonly bus: Bus;
  readonly put: ReturnType<typeof hands>;
  readonly history: HistoryStore;
  /** Of `docs-live`, to go on with. */
  readonly live: WrittenHistory;
}

export async function cliWorld(natsUrl: string): Promise<CliWorld> {
  const names = subjects();
  const bus = await connectBus({ url: natsUrl, name: "cli-world", announce: silent });
  const topology = { ...defaultTopology, historyShards: 2 };
  await ensureTopology(bus, names, topology);
  const history = new HistoryStore({
    ...{
      bus,
      names,
      runtime: systemRuntime(silent),
      layout: "shared",
      maxOwnStreams: 0,
      shards: 2,
      replicas: 1,
    },
  });
  const put = hands(bus);
  await put.worker({
    workerId: "worker-a-k3x9",
    host: "gpu-1",
    startedAt: past,
    seenAt: later,
    sessionTypes: ["ml-classifier"],
    perType: { "ml-classifier": { used: 1, max: 4 } },
    sessions: [
      {
        ...{ sessionId: "docs-s1", type: "ml-classifier", epoch: 118, calls: 412, queued: 1, running: 1 },
        ...{ since: later, snapshot: { hits: 388 } },
      },
    ],
  });
  await put.worker({
    ...{ workerId: "worker-c-99ab", host: "cpu-7", tags: [], sessionTypes: [], models: [], draining: true },
    ...{ startedAt: past, seenAt: later, device: undefined, resources: { total: {}, used: {} } },
  });
  await put.session({
    ...{ sessionId: "docs-s1", instanceId: "docs-live", type: "ml-classifier", workerId: "worker-a-k3x9" },
    ...{ epoch: 118, attachment: 2, host: "gpu-1", resourceId: "cuda:0", openedAt: past, updatedAt: past },
    ...{ claimedAt: later, initMs: 1240, metadata: { team: "a" } },
    requires: { tags: ["gpu"], resources: { vram: 2 } },
    owners: [
      { workerId: "worker-b-p0q2", epoch: 97, from: past, to: past + 5_000, end: "expired" },
      { workerId: "worker-a-k3x9", epoch: 118, from: past + 6_000 },
    ],
  });
  await put.session({
    ...{ sessionId: "whisper-1", instanceId: "transcribe", type: "whisper", phase: "opening" },
    ...{ openedAt: past - 1, updatedAt: later, requires: { tags: ["h100"], resources: {} } },
  });
  const live = await writeHistory(history, "docs-live", reclaimedHistory(past, "docs-s1").slice(0, 9));
  await put.instance({
    ...{
      instanceId: "docs-live",
      name: "classify-docs",
      startedAt: past,
      updatedAt: past,
      events: live.events,
    },
    ...{ sessions: ["docs-s1"], input: { json: { docs: ["a", "b"] } }, customStatus: { json: { done: 1 } } },
  });
  await put.instance({
    ...{
      instanceId: "report-1",
      name: "report",
      status: "completed",
      startedAt: past - 9_000,
      endedAt: past - 7_500,
    },
    ...{ updatedAt: past, output: { json: [1, 2] } },
  });
  await put.instance({
    ...{ instanceId: "report-2", name: "report", status: "failed", startedAt: past - 20_000, endedAt: past },
    updatedAt: past,
    error: { code: "http_500", message: "upstream\u001b[31m failed", retryable: false },
  });
  for (const [id, code] of [
    ["docs-77", "invalid_json"],
    ["docs-12", "poisoned"],
  ] as const) {
    await bus.publish(
      names.dead("inbox", id),
      encode({
        ...{
          v: 1,
          what: "inbox",
          id,
          subject: `inbox.3.${id}.signal.go`,
          at: past,
          headers: { "X-From": "test" },
        },
        reason: { code, message: "nobody could take it" },
        body: Buffer.from(`{"by":"${id}"}`).toString("base64"),
      }),
    );
  }
  return { bus, put, history, live, [Symbol.asyncDispose]: () => bus.close() };
}

/** As an orchestrator does when it gives up on an instance. */
export const park = (bus: Bus, instanceId: string) =>
  new Bucket(bus, subjects().bucket("settings")).put(
    `parked.${instanceId}`,
    encode({ code: "nondeterminism", message: "history has a timer, the code issued a status" }),
  );
