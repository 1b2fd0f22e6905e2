/** A gateway on a free port before a real server, and the hands to put things into the read models. */
import { join } from "node:path";
import type { InstanceSummary, ServiceInfo, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import { Commit } from "../../../schemas/index.ts";
import {
  defaultGatewayConfig,
  Gateway,
  type GatewayConfig,
  PortListener,
} from "../../../services/gateway/index.ts";
import { packageDir } from "../../../services/version.ts";
import {
  Bucket,
  type Bus,
  connectBus,
  defaultTopology,
  encode,
  ensureTopology,
  leaseKeys,
  subjects,
} from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { type Happening, systemRuntime } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/client/client.ts";
import { Telemetry } from "../../../shared/telemetry/index.ts";
import { rolesOf } from "../nats/secured-nats.ts";

export const names = subjects();
const topology = { ...defaultTopology, historyShards: 2 };

export interface TestGateway extends AsyncDisposable {
  readonly url: string;
  /** The test's own, with all rights. */
  readonly bus: Bus;
  /** What the gateway itself talks over. */
  readonly gatewayBus: Bus;
  readonly gateway: Gateway;
  readonly happenings: Happening[];
  readonly history: HistoryStore;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  stop(): Promise<void>;
}

export async function startGateway(
  natsUrl: string,
  config: Partial<GatewayConfig> = {},
): Promise<TestGateway> {
  const happenings: Happening[] = [];
  const telemetry = new Telemetry({ service: "gateway", id: "gateway-test", version: "0.0.0-test" });
  const runtime = systemRuntime((happening) => {
    happenings.push(happening);
    telemetry.listen(happening);
  });
  const bus = await connectBus({ url: natsUrl, name: "gateway-test", announce: runtime.announce });
  await ensureTopology(bus, names, topology);
  const secured = rolesOf(natsUrl);
  const own = secured && (await connectBus({ ...secured.connection("gateway"), announce: runtime.announce }));
  const historyOn = (reader: Bus) =>
    new HistoryStore({
      bus: reader,
      names,
      runtime,
      layout: "shared",
      maxOwnStreams: 0,
      shards: topology.historyShards,
      replicas: 1,
    });
  const full = { ...defaultGatewayConfig, port: 0, requestsPerSecond: 10_000, ...config };
  const gateway = new Gateway({
    listener: new PortListener({ host: full.host, port: full.port, clock: runtime.clock }),
    bus: own ?? bus,
    names,
    runtime,
    client: new Client({ bus: own ?? bus, names, runtime }),
    history: historyOn(own ?? bus),
    topology,
    config: full,
    version: "0.0.0-test",
    fleet: { members: () => [] },
    registry: telemetry.registry,
    dashboardDir: join(packageDir(), "dist", "dashboard"),
  });
  await gateway.start();
  const { url } = gateway;
  const stop = async () => {
    await gateway.stop();
    await own?.close();
    await bus.close();
    const refused = secured?.refused() ?? [];
    if (refused.length > 0) throw new Error(`NATS refused: ${refused.join("; ")}`);
  };
  return {
    url,
    bus,
    gatewayBus: own ?? bus,
    gateway,
    happenings,
    history: historyOn(bus),
    get: (path, headers = {}) => fetch(`${url}${path}`, { headers }),
    post: (path, body, headers = {}) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

type Loose<T> = { [K in keyof T]?: unknown };

/** Writes read models as the engine would. Ids are checked by the schemas when the gateway reads them. */
export function hands(bus: Bus) {
  const bucket = (name: "instances" | "sessions" | "workers" | "services" | "leases") =>
    new Bucket(bus, names.bucket(name));
  return {
    async instance(summary: Loose<InstanceSummary> & { instanceId: string }) {
      const now = Date.now();
      await bucket("instances").put(
        summary.instanceId,
        encode({
          v: 1,
          name: "demo",
          status: "running",
          execution: 1,
          events: 1,
          startedAt: now,
          updatedAt: now,
          ...summary,
        }),
      );
      bus.send(names.notice(summary.instanceId, "changed"), encode({}));
    },
    async session(record: Loose<SessionRecord> & { sessionId: string }) {
      const now = Date.now();
      await bucket("sessions").put(
        record.sessionId,
        encode({
          v: 1,
          instanceId: "i1",
          type: "classifier",
          phase: "active",
          attachment: 1,
          requires: { tags: [], resources: {} },
          metadata: {},
          openedAt: now,
          updatedAt: now,
          owners: [],
          ...record,
        }),
      );
    },
    async lease(sessionId: string, attachment: number, holder: string, ttlMs = 15_000) {
      const session = { instanceId: "i1", sessionId, attachment };
      const body = encode({ v: 1, holder, session });
      await bucket("leases").put(leaseKeys.session(sessionId, attachment), body, { ttlMs });
    },
    async partition(partition: number, holder: string) {
      const key = leaseKeys.partition(partition);
      await new Bucket(bus, names.engineBucket).put(key, encode({ v: 1, holder }), { ttlMs: 600_000 });
    },
    async worker(info: Loose<WorkerInfo> & { workerId: string }, ttlMs = 600_000) {
      const body = encode({ ...worker(info.workerId), ...info });
      await bucket("workers").put(info.workerId, body, { ttlMs });
    },
    async service(info: Loose<ServiceInfo> & { service: string; id: string }, ttlMs = 600_000) {
      const now = Date.now();
      const body = encode({
        v: 1,
        host: "box",
        pid: 1,
        version: "0.1.0",
        startedAt: now,
        seenAt: now,
        ...info,
      });
      await bucket("services").put(`${info.service}.${info.id}`, body, { ttlMs });
    },
    async dead(letter: {
      what: string;
      id: string;
      subject: string;
      body: string;
      code?: string;
      message?: string;
    }) {
      const { what, id, subject, body, code = "invalid", message = "does not parse" } = letter;
      const outcome = await bus.publish(
        names.dead(what, id),
        encode({
          v: 1,
          what,
          id,
          subject,
          reason: { code, message },
          at: Date.now(),
          headers: { "X-From": "test" },
          body: Buffer.from(body).toString("base64"),
        }),
      );
      if (outcome.kind !== "stored") throw new Error(`dead letter not stored: ${outcome.kind}`);
      return outcome.seq;
    },
  };
}

const worker = (workerId: string): WorkerInfo =>
  ({
    v: 1,
    workerId,
    nodeId: workerId.split("-")[0] ?? workerId,
    host: "box",
    pid: 42,
    resourceId: `${workerId}-r`,
    buildId: "b1",
    startedAt: Date.now() - 60_000,
    seenAt: Date.now(),
    draining: false,
    tags: ["gpu"],
    resources: { total: { vram: 24 }, used: { vram: 2 } },
    activities: [{ queue: "default", name: "greet" }],
    sessionTypes: ["classifier"],
    slots: {
      activities: { used: 1, max: 8 },
      calls: { used: 0, max: 8 },
      sessions: { used: 1, max: 4 },
    },
    perType: { classifier: { used: 1, max: 4 } },
    warm: [],
    device: "cuda:0",
    models: [{ name: "tiny-bert", device: "cuda:0", loadMs: 1200, bytes: 44_000_000 }],
    rssBytes: 310_000_000,
    eventLoopDelayMs: 1.2,
    sessions: [],
  }) as unknown as WorkerInfo;

type Turn = { at: number; events: Record<string, unknown>[] };

export interface WrittenHistory {
  readonly events: number;
  append(turns: Turn[]): Promise<void>;
}

/** A history made by hand: turns of events without ids, which are given here. */
export async function writeHistory(
  history: HistoryStore,
  instanceId: string,
  turns: Turn[],
): Promise<WrittenHistory> {
  let position = await history.place(instanceId);
  let id = 0;
  let commits = 0;
  const append = async (more: Turn[]) => {
    for (const turn of more) {
      const commit = Commit.parse({
        v: 1,
        commitId: `${instanceId}-${commits}`,
        instanceId,
        execution: 1,
        at: turn.at,
        inbox: [commits + 1],
        events: turn.events.map((event) => ({ id: ++id, ...event })),
      });
      const outcome = await history.append(position, commit, { startsExecution: commits === 0 });
      if (outcome.kind !== "appended") throw new Error(`history of ${instanceId} is not ours`);
      position = outcome.position;
      commits++;
    }
  };
  await append(turns);
  return {
    get events() {
      return id;
    },
    append,
  };
}

export async function json(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

/** Waits for a fact, looking often; gives up loudly. */
export async function eventually<T>(
  look: () => Promise<T | undefined | false>,
  what: string,
  ms = 10_000,
): Promise<T> {
  const until = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > until) throw new Error(`${what} did not happen within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
