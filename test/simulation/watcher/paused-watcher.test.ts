/** A watcher that is paused anywhere in its clearing away, while another does the same and the id is used anew. */

import { expect, test } from "vitest";
import {
  Commit,
  InstanceId,
  type InstanceSummary,
  SessionId,
  SessionRecord,
} from "../../../schemas/index.ts";
import { defaultWatcherConfig } from "../../../services/watcher/config.ts";
import { newCounters } from "../../../services/watcher/counters.ts";
import { openRegisters, type WatcherDeps } from "../../../services/watcher/deps.ts";
import { Grace } from "../../../services/watcher/grace.ts";
import { Purges } from "../../../services/watcher/purge.ts";
import { ForgetSessions } from "../../../services/watcher/retention/forget-sessions.ts";
import { ForgetWorkers } from "../../../services/watcher/retention/forget-workers.ts";
import { RemoveInstances } from "../../../services/watcher/retention/remove-instances.ts";
import type { Bus } from "../../../shared/bus/bus.ts";
import {
  Bucket,
  defaultTopology,
  encode,
  ensureTopology,
  Payloads,
  subjects,
} from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { type Runtime, seededRandom, silent } from "../../../shared/runtime/index.ts";
import { SimulatedClock } from "../../../shared/testing/clock/simulated-clock.ts";
import { MemoryBroker } from "../../../shared/testing/memory/index.ts";
import { blobKeys } from "../../support/nats/blob-keys.ts";
import { pausedBefore } from "../../support/nats/paused-bus.ts";

const names = subjects();
const shards = 2;
const config = { ...defaultWatcherConfig, retainForMs: 1_000, archiveAfterMs: 1_000, deadAfterMs: 1_000 };
const big = "x".repeat(1_000);

class Rig {
  readonly clock = new SimulatedClock();
  readonly broker = new MemoryBroker({ clock: this.clock });
  readonly bus: Bus = this.broker.connect();
  readonly runtime: Runtime = { clock: this.clock, random: seededRandom(1), announce: silent };

  run<T>(work: Promise<T>): Promise<T> {
    return this.clock.run(work);
  }

  /** What a watcher's steps are given. */
  deps(bus: Bus): WatcherDeps {
    const { runtime } = this;
    const registers = openRegisters(bus, names, runtime);
    const grace = new Grace(runtime, 1_000);
    const generation = { allows: () => true };
    const acting = () => true; // asked right before the pause
    return { bus, names, runtime, config, registers, counters: newCounters(), grace, generation, acting };
  }

  histories(bus: Bus): HistoryStore {
    const { runtime } = this;
    return new HistoryStore({
      ...{ bus, names, runtime, shards },
      layout: "per-instance",
      maxOwnStreams: 100,
      replicas: 1,
    });
  }

  async instance(id: string, status: "completed" | "running"): Promise<void> {
    const { bus } = this;
    const instanceId = InstanceId.parse(id);
    const now = this.clock.now();
    const commit = Commit.parse({
      v: 1,
      commitId: `c-${status}`,
      instanceId,
      execution: 1,
      at: now,
      inbox: [1],
      events: [
        { id: 1, kind: "instance.started", name: "n", input: { json: 1 } },
        ...(status === "completed" ? [{ id: 2, kind: "instance.completed", output: { json: 2 } }] : []),
      ],
    });
    const store = this.histories(bus);
    await store.append(await store.place(id), commit, { startsExecution: true });
    // The same input as before: the same blob.
    await new Payloads(bus.blobs, { inlineBytes: 10 }).wrap(big, id);
    await bus.publish(names.signal(id, "late"), encode({}));
    await bus.publish(names.timer(id, 1, 1), encode({}), {
      schedule: { at: now + 3_600_000, target: names.fired(names.verb(id, "wake")) },
    });
    await bus.publish(names.stream(id, 1, 2), encode({ chunk: 1 }));
    const summary: InstanceSummary = {
      ...{ v: 1, instanceId, status, execution: 1, events: 2, updatedAt: now },
      ...(status === "completed" ? { endedAt: now } : {}),
    };
    await new Bucket(bus, names.bucket("instances")).put(id, encode(summary));
  }
}

async function opened(): Promise<Rig> {
  const rig = new Rig();
  await rig.run(ensureTopology(rig.bus, names, { ...defaultTopology, historyShards: shards }));
  return rig;
}

test("defect 9: a paused watcher removes nothing of an instance begun anew under the same id", async () => {
  for (let nth = 1; ; nth++) {
    const rig = await opened();
    await rig.run(rig.instance("a", "completed"));
    await rig.clock.advance(2_000);
    const again = async (): Promise<void> => {
      const other = rig.deps(rig.bus);
      await new RemoveInstances(other, rig.histories(rig.bus)).run(10);
      await rig.instance("a", "running");
    };
    const watch = pausedBefore(rig.bus, nth, again);
    await rig.run(new RemoveInstances(rig.deps(watch.bus), rig.histories(watch.bus)).run(10));
    if (!watch.paused) break;
    const where = `paused before call ${nth}`;
    const store = rig.histories(rig.bus);
    expect(await rig.run(store.readAll("a")), where).toMatchObject([{ commitId: "c-running" }]);
    expect(await rig.run(rig.bus.read(names.inboxStream, names.inboxOf("a"))), where).toHaveLength(1);
    expect(await rig.run(rig.bus.read(names.timersStream, names.timersOf("a"))), where).toHaveLength(1);
    expect(await rig.run(rig.bus.read(names.streamsStream, names.streamsOf("a"))), where).toHaveLength(1);
    expect(await rig.run(blobKeys(rig.bus.blobs, "a/")), where).toHaveLength(1);
    const [key = ""] = await rig.run(blobKeys(rig.bus.blobs, "a/"));
    expect(await rig.run(rig.bus.blobs.get(key)), where).toHaveLength(big.length + 2);
    expect(await rig.run(new Bucket(rig.bus, names.bucket("instances")).get("a")), where).toBeDefined();
  }
});

const record = (sessionId: string, fields: Partial<SessionRecord>, now: number): SessionRecord =>
  SessionRecord.parse({
    ...{ v: 1, sessionId, instanceId: "i1", type: "t", phase: "active", attachment: 1 },
    ...{ requires: { tags: [], resources: {} }, metadata: {}, openedAt: now, updatedAt: now, owners: [] },
    ...fields,
  });

test("defect 9: a paused watcher removes no checkpoint of a session opened anew under the same id", async () => {
  for (let nth = 1; ; nth++) {
    const rig = await opened();
    const sessions = new Bucket(rig.bus, names.bucket("sessions"));
    const write = async (phase: SessionRecord["phase"], instanceId: string): Promise<void> => {
      const value = record("s", { phase, instanceId: InstanceId.parse(instanceId) }, rig.clock.now());
      await rig.bus.blobs.put("checkpoints/s/1-1", new Uint8Array(3));
      await sessions.put("s", encode(value));
    };
    await rig.run(write("closed", "i1"));
    await rig.clock.advance(2_000);
    const watch = pausedBefore(rig.bus, nth, async () => {
      await new ForgetSessions(rig.deps(rig.bus)).run(10);
      await write("active", "i2");
    });
    await rig.run(new ForgetSessions(rig.deps(watch.bus)).run(10));
    if (!watch.paused) break;
    expect(await rig.run(rig.bus.blobs.get("checkpoints/s/1-1")), `call ${nth}`).toHaveLength(3);
    expect(await rig.run(sessions.get("s")), `call ${nth}`).toBeDefined();
  }
});

test("defect 9: the end of an instance takes no checkpoint of another's session that has an id it once used", async () => {
  const rig = await opened();
  await rig.run(rig.instance("a", "completed"));
  const instances = new Bucket(rig.bus, names.bucket("instances"));
  const ended: InstanceSummary = {
    ...{ v: 1, instanceId: InstanceId.parse("a"), status: "completed", execution: 1, events: 2 },
    ...{ updatedAt: rig.clock.now(), endedAt: rig.clock.now(), sessions: [SessionId.parse("s")] },
  };
  await rig.run(instances.put("a", encode(ended)));
  const theirs = record("s", { instanceId: InstanceId.parse("b") }, rig.clock.now());
  await rig.run(new Bucket(rig.bus, names.bucket("sessions")).put("s", encode(theirs)));
  await rig.run(rig.bus.blobs.put("checkpoints/s/1-1", new Uint8Array(3)));
  await rig.clock.advance(2_000);
  await rig.run(new RemoveInstances(rig.deps(rig.bus), rig.histories(rig.bus)).run(10));
  expect(await rig.run(instances.get("a"))).toBeUndefined();
  expect(await rig.run(rig.bus.blobs.get("checkpoints/s/1-1"))).toHaveLength(3);
});

test("defect 9: a paused watcher purges no work that a worker got when it was there again", async () => {
  for (const by of ["loss", "sweep"] as const) {
    for (let nth = 1; ; nth++) {
      const rig = await opened();
      const workers = new Bucket(rig.bus, names.bucket("workers"));
      const work = (): Promise<unknown> => rig.bus.publish(names.sessionWork("w", "s"), encode({}));
      await rig.run(work());
      let second: Promise<unknown> | undefined;
      const back = async (): Promise<void> => {
        await workers.put("w", encode({}));
        second ??= work();
        await second;
      };
      const watch = pausedBefore(rig.bus, nth, back);
      const deps = rig.deps(watch.bus);
      if (by === "loss") {
        const lost = record("s", { workerId: "w" as never }, rig.clock.now());
        await rig.run(new Purges(deps).afterLoss(lost, 1));
      } else {
        const step = new ForgetWorkers(deps);
        await rig.run(step.run(10));
        await rig.clock.advance(2_000);
        await rig.run(step.run(10));
      }
      if (!watch.paused) break;
      const left = (await rig.run(rig.bus.read(names.sessionsStream, names.allSessionWork))) ?? [];
      expect(left.length, `${by}, paused before call ${nth}`).toBeGreaterThan(0);
    }
  }
});
