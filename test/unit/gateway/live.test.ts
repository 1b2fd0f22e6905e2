/** What the gateway keeps in memory and says about it. Pure, no server. */
import { describe, expect, it } from "vitest";
import type { InstanceSummary } from "../../../schemas/index.ts";
import { withoutIds } from "../../../services/gateway/gauges.ts";
import { InstanceIndex } from "../../../services/gateway/live/instance-index.ts";
import type { SessionRow } from "../../../services/gateway/live/rows.ts";
import { sessionSums } from "../../../services/gateway/live/session-sums.ts";
import { findTroubles, type TroubleInput } from "../../../services/gateway/live/troubles.ts";
import { parseTtl } from "../../../shared/bus/index.ts";
import { seededRandom } from "../../../shared/runtime/index.ts";
import { Rates } from "../../../shared/wording/rates.ts";

const summary = (instanceId: string, startedAt: number, more: object = {}): InstanceSummary =>
  ({
    v: 1,
    instanceId,
    name: "x",
    status: "running",
    execution: 1,
    events: 1,
    startedAt,
    updatedAt: startedAt,
    ...more,
  }) as InstanceSummary;

describe("the index of instances", () => {
  it("pages through everything once, whatever order it came in and whatever changed between", () => {
    const random = seededRandom(7);
    const index = new InstanceIndex();
    const ids = Array.from({ length: 500 }, (_, i) => `i-${i}`);
    for (const id of [...ids].sort(() => random.next() - 0.5)) {
      index.set(summary(id, Math.floor(random.next() * 50)));
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = index.page({}, 37, cursor);
      seen.push(...page.rows.map((row) => row.instanceId));
      cursor = page.cursor;
      // Known ones change and later ones come: neither shifts what is still to be seen.
      index.set(summary(`new-${seen.length}`, 1_000 + seen.length));
      const first = page.rows[0];
      if (first) index.set(summary(first.instanceId, first.startedAt ?? 0, { status: "completed" }));
    } while (cursor);
    expect(seen.filter((id) => id.startsWith("i-")).sort()).toEqual([...ids].sort());
    expect(new Set(seen).size).toBe(seen.length);
  });

  it("counts by status through changes and deletions", () => {
    const index = new InstanceIndex();
    index.set(summary("a", 1));
    index.set(summary("a", 1, { status: "completed" }));
    index.set(summary("b", 2));
    index.delete("b");
    expect(index.counts()).toMatchObject({ running: 0, completed: 1 });
    expect(index.size).toBe(1);
  });

  it("shows the engine's own instances apart, and where they are asked for by name", () => {
    const index = new InstanceIndex();
    index.set(summary("order", 1));
    index.set(summary("left", 2, { name: "holdfast-left-out", status: "failed" }));
    index.set(summary("schedule-nightly", 3, { name: "holdfast-schedule", sessions: ["s"] }));
    const ids = (filter: Parameters<InstanceIndex["page"]>[0]) =>
      index.page(filter, 10).rows.map(({ instanceId }) => instanceId as string);
    expect(ids({})).toEqual(["left", "order"]);
    expect(ids({ engine: true })).toEqual(["schedule-nightly"]);
    expect(ids({ name: "holdfast-schedule" })).toEqual(["schedule-nightly"]);
    expect(ids({ session: "s" })).toEqual(["schedule-nightly"]);
    expect(index.counts()).toMatchObject({ running: 1, failed: 1 });
    expect(index.engineCounts()).toMatchObject({ running: 1, failed: 0 });
    index.set(summary("schedule-nightly", 3, { name: "holdfast-schedule", status: "completed" }));
    expect(index.engineCounts()).toMatchObject({ running: 0, completed: 1 });
  });

  it("stays bounded: the oldest ended leave first, the running never", () => {
    const index = new InstanceIndex(10);
    for (let i = 0; i < 8; i++) index.set(summary(`run-${i}`, i));
    for (let i = 0; i < 8; i++) index.set(summary(`end-${i}`, 100 + i, { status: "completed" }));
    index.trim();
    expect(index.size).toBe(10);
    expect(index.counts()).toMatchObject({ running: 8, completed: 2 });
    expect(index.get("end-7")).toBeDefined();
    expect(index.forgotten).toBe(6);
  });
});

describe("rates", () => {
  it("count the last minute and forget what is older than the window", () => {
    const rates = new Rates();
    const now = 10_000_000;
    rates.add("started", now - 400_000, now);
    rates.add("started", now - 70_000, now);
    rates.add("started", now - 10_000, now);
    rates.add("lost", now, now);
    expect(rates.lastMinute("started", now)).toBe(1);
    expect(rates.lastMinute("lost", now)).toBe(1);
    expect(rates.series(now)).toHaveLength(60);
    expect(rates.series(now).reduce((sum, point) => sum + point.started, 0)).toBe(2);
  });
});

describe("troubles", () => {
  const calm: TroubleInput = {
    now: 1_000_000,
    bus: { connected: true },
    counts: { pending: 0, running: 3, parked: 0, completed: 9, failed: 0, cancelled: 0, terminated: 0 },
    engineCounts: { pending: 0, running: 0, parked: 0, completed: 0, failed: 0, cancelled: 0, terminated: 0 },
    sessions: [],
    workers: [],
    services: [{ service: "orchestrator" }, { service: "watcher", acting: true }] as never,
    streams: undefined,
    fleet: { newest: 2, written: 2, versions: {}, heldBackBy: [] },
    partitions: { wanted: 16, held: 16 },
    lostPerMinute: 0,
    failedPerMinute: 0,
  };
  const codes = (change: Partial<TroubleInput>) =>
    findTroubles({ ...calm, ...change }).map(({ code }) => code);

  it("are none where nothing is wrong", () => {
    expect(findTroubles(calm)).toEqual([]);
  });

  it("say what is missing, errors first", () => {
    expect(codes({ services: [] })).toEqual(["no_orchestrator", "no_watcher"]);
    expect(codes({ partitions: { wanted: 16, held: 12 } })).toEqual(["partitions_unheld"]);
    expect(codes({ lostPerMinute: 3, counts: { ...calm.counts, parked: 1 } })).toEqual([
      "instances_parked",
      "sessions_lost",
    ]);
    const ofEngine = findTroubles({ ...calm, engineCounts: { ...calm.engineCounts, parked: 1 } });
    expect(ofEngine).toMatchObject([
      { code: "instances_parked", link: "/orchestrations?status=parked&engine=true" },
    ]);
    expect(findTroubles({ ...calm, lostPerMinute: 3 })[0]?.message).toBe(
      "3 sessions lost in the last minute",
    );
  });

  it("speak of nothing else while NATS is away", () => {
    expect(codes({ bus: { connected: false, awaySince: 990_000 }, services: [], lostPerMinute: 9 })).toEqual([
      "bus_away",
    ]);
  });

  it("wait a moment before they call a session unserved", () => {
    const session = {
      sessionId: "s",
      type: "ml",
      phase: "opening",
      requires: { tags: [], resources: {} },
      updatedAt: 999_000,
    };
    expect(codes({ sessions: [session] as never })).toEqual([]);
    const [trouble] = findTroubles({ ...calm, sessions: [{ ...session, updatedAt: 900_000 }] as never });
    expect(trouble?.message).toBe("1 session of type ml waits, the oldest for 100 s: no worker is running");
  });

  it("name tasks that nobody takes", () => {
    const activities = {
      name: "ACTIVITIES",
      role: "queue",
      messages: 2,
      bytes: 0,
      lastSeq: 2,
      replicas: 1,
      consumers: [],
    };
    const streams = { at: 0, streams: [activities], ownHistories: 0, total: 1 } as TroubleInput["streams"];
    expect(findTroubles({ ...calm, streams })[0]?.message).toBe("No worker is running: 2 tasks wait");
  });
});

it("reads the times to live the server writes", () => {
  expect(["15s", "1m0s", "1h0m0s", "30", "1.5s"].map(parseTtl)).toEqual([
    15_000, 60_000, 3_600_000, 30_000, 1_500,
  ]);
  expect([undefined, "", "soon"].map(parseTtl)).toEqual([undefined, undefined, undefined]);
});

it("keeps ids of workers out of labels", () => {
  expect(["w_node-abc", "p12", "a_default_greet", "c_ml"].map(withoutIds)).toEqual([
    "worker",
    "partition",
    "a_default_greet",
    "c_ml",
  ]);
});

describe("sessions in metrics", () => {
  it("sum up what describe() says of each, by type, without those that are over", () => {
    const row = (more: object) =>
      ({ type: "ml", phase: "active", openedAt: 1_000, owners: [{}], ...more }) as unknown as SessionRow;
    const held = { calls: 9, running: 0, queued: 2, since: 2_000 };
    const blobs = [{ name: "a", bytes: 10 }];
    const rows = [
      row({ inits: 2, rebuilds: 1, blobs, work: { ...held, hostBytes: 500 } }),
      row({ openedAt: 5_000, inits: 1, work: { ...held, running: 1, queued: 0, usedAt: 3_000 } }),
      row({ phase: "parked", openedAt: 4_000, owners: [] }),
      row({ phase: "closed", openedAt: 0, inits: 50, rebuilds: 50 }),
      row({ type: "other", openedAt: 9_000, work: { ...held, queued: 0, usedAt: 9_500 } }),
    ];
    const sums = sessionSums(rows, 10_000);
    expect(sums.get("ml")).toEqual({
      ...{ oldestMs: 9_000, idleMs: 8_000, running: 1, queued: 2, hostBytes: 500 },
      ...{ blobs: 1, blobBytes: 10, inits: 3, rebuilds: 1, owners: 2 },
    });
    expect(sums.get("other")).toMatchObject({ oldestMs: 1_000, idleMs: 500, owners: 1 });
    expect([...sums.keys()]).toEqual(["ml", "other"]);
  });
});
