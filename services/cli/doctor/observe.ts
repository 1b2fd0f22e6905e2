/** Reads everything that `doctor` reports on. Its only write tests whether the server accepts writes. */
import { z } from "zod";
import { DeadLetter, ServiceInfo, SessionRecord, WorkerInfo } from "../../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  bucketStream,
  bucketSubject,
  decode,
  encode,
  installedNames,
  leaseKeys,
  readServerClocks,
  type StreamInfo,
  type Subjects,
  TypedBucket,
  topology,
} from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import { Fleet, fleetView } from "../../../shared/fleet/index.ts";
import { LeaseStore } from "../../../shared/leases/index.ts";
import { silent, systemClock } from "../../../shared/runtime/index.ts";
import type { EngineConfig } from "../../config.ts";
import type {
  Observations,
  ObservedQueue,
  ServerObservations,
  WaitingActivity,
  WriteTrial,
  WrittenEntry,
} from "./observations.ts";

export interface ObservedInstallation {
  bus: Bus;
  names: Subjects;
  config: EngineConfig;
  sync: string | undefined;
  now: () => number;
}

/** Only the oldest tasks are read: tasks that no worker serves are among them. */
const tasksLookedAt = 200;
const Parked = z.object({ code: z.string(), message: z.string() });

/** If streams are missing, only the server can be examined. */
export async function observe(
  asked: ObservedInstallation,
): Promise<{ server: ServerObservations; rest: Observations | undefined }> {
  const installation = { ...asked, names: await installedNames(asked.bus, asked.names) };
  const server = await lookAtServer(installation);
  const complete = server.streams.every(({ info }) => info !== undefined);
  return { server, rest: complete ? await lookFurther(installation, server) : undefined };
}

async function lookAtServer(installation: ObservedInstallation): Promise<ServerObservations> {
  const { bus, names, config, sync, now } = installation;
  // The first shared history stream records how many there are.
  const first = await bus.streamInfo(names.sharedHistoryStream(0));
  const specs = topology(names, {
    partitions: config.partitions,
    historyShards: Number(first?.metadata.shards ?? config.history.shards),
    replicas: config.replicas,
  });
  const [account, streams] = await Promise.all([
    bus.account(),
    Promise.all(
      specs.map(async ({ name, maxBytes }) => ({
        name,
        info: await bus.streamInfo(name),
        rolls: maxBytes !== undefined,
      })),
    ),
  ]);
  const settings = bucketStream(names.bucket("settings"));
  const hasSettings = streams.some(({ name, info }) => name === settings && info !== undefined);
  return {
    now: now(),
    version: bus.serverVersion(),
    sync,
    maxPayloadBytes: bus.maxPayloadBytes,
    account,
    clock: await clockOf(installation),
    serverClocks: bus.clustered() ? await readServerClocks(bus, await bus.streamNames(">"), now) : [],
    replicas: { wanted: config.replicas },
    streams,
    write: hasSettings ? await tryWriting(installation) : undefined,
  };
}

/** A server whose disk or store is full answers reads and refuses writes. The test message is removed. */
async function tryWriting({ bus, names }: ObservedInstallation): Promise<WriteTrial> {
  const bucket = new Bucket(bus, names.bucket("settings"));
  const key = "doctor.trial";
  try {
    const outcome = await bucket.put(key, encode({ at: Date.now() }));
    if (outcome.kind !== "written") return { kind: "unanswered" };
    await bus.purge(bucket.stream, bucketSubject(bucket.name, key), outcome.revision);
    return { kind: "stored" };
  } catch (error) {
    if (!isFault(error)) throw error;
    return error.code === "nats_unavailable"
      ? { kind: "unanswered" }
      : { kind: "refused", why: error.message };
  }
}

/** The fastest answer is the most accurate. */
async function clockOf({ bus, names, now }: ObservedInstallation): Promise<ServerObservations["clock"]> {
  let best: ServerObservations["clock"];
  for (let attempt = 0; attempt < 3; attempt++) {
    const before = now();
    const info = await bus.streamInfo(names.inboxStream);
    const after = now();
    if (!info) return undefined;
    const unsureMs = (after - before) / 2;
    if (!best || unsureMs < best.unsureMs) best = { aheadMs: info.seenAt - (before + after) / 2, unsureMs };
  }
  return best;
}

async function lookFurther(
  installation: ObservedInstallation,
  server: ServerObservations,
): Promise<Observations> {
  const { bus, names, config } = installation;
  const infoOf = (name: string): StreamInfo | undefined =>
    server.streams.find((stream) => stream.name === name)?.info;
  const count = Number(infoOf(names.inboxStream)?.metadata.partitions ?? config.partitions);
  const fleet = new Fleet({ bus, names, runtime: { clock: systemClock, announce: silent } });
  await fleet.start();
  const members = fleet.members();
  await fleet.stop();
  const [own, held, watcherLease, queues, waitingActivities, dead, parked, services, workers, sessions] =
    await Promise.all([
      bus.streamNames(names.ownHistories),
      heldPartitions(installation, count),
      new LeaseStore(bus, names.engineBucket).look(leaseKeys.service("watcher")),
      Promise.all(
        [names.inboxStream, names.activitiesStream, names.claimsStream, names.sessionsStream].map((name) =>
          queue(bus, name, infoOf(name)),
        ),
      ),
      waitingTasks(installation),
      deadLetters(installation, infoOf(names.deadStream)),
      parkedInstances(installation),
      all(installation, "services", ServiceInfo),
      all(installation, "workers", WorkerInfo),
      all(installation, "sessions", SessionRecord),
    ]);
  return {
    ...server,
    layout: config.history.layout,
    maxOwnStreams: config.history.maxOwnStreams,
    ownHistories: own.length,
    partitions: { count, held },
    watcherLease: watcherLease.kind === "held" ? "held" : "free",
    queues,
    waitingActivities,
    dead,
    parked,
    services,
    workers,
    fleet: fleetView(members),
    openSessions: sessions.map(({ value }) => value).filter(({ phase }) => phase === "opening"),
  };
}

async function heldPartitions({ bus, names }: ObservedInstallation, count: number): Promise<number[]> {
  const held: number[] = [];
  for await (const { key } of new Bucket(bus, names.engineBucket).entries(leaseKeys.allPartitions)) {
    const partition = leaseKeys.parsePartition(key);
    if (partition < count) held.push(partition);
  }
  return held.sort((a, b) => a - b);
}

const queue = async (bus: Bus, name: string, info: StreamInfo | undefined): Promise<ObservedQueue> => ({
  name,
  messages: info?.messages ?? 0,
  consumers: await bus.consumers(name),
});

async function waitingTasks({ bus, names }: ObservedInstallation): Promise<WaitingActivity[]> {
  const oldest = (await bus.read(names.activitiesStream, names.allActivities, 1, tasksLookedAt)) ?? [];
  const waiting = new Map<string, WaitingActivity>();
  for (const { subject, at } of oldest) {
    const activity = names.parseActivity(subject);
    if (!activity) continue;
    const known = waiting.get(subject) ?? { ...activity, tasks: 0, oldestAt: at };
    known.tasks++;
    waiting.set(subject, known);
  }
  return [...waiting.values()];
}

async function deadLetters(
  { bus, names }: ObservedInstallation,
  info: StreamInfo | undefined,
): Promise<Observations["dead"]> {
  if (!info || info.messages === 0) return { letters: 0, latest: undefined };
  const filter = names.deadSubjects[0] ?? "";
  const last = ((await bus.read(names.deadStream, filter, info.lastSeq, 1)) ?? []).at(-1);
  const letter = last && decode(DeadLetter, last.body);
  return { letters: info.messages, latest: letter?.kind === "ok" ? letter.value.reason : undefined };
}

async function parkedInstances({ bus, names }: ObservedInstallation): Promise<Observations["parked"]> {
  const parked: Observations["parked"][number][] = [];
  const bucket = new TypedBucket(new Bucket(bus, names.bucket("settings")), Parked, silent);
  for await (const { key, value } of bucket.entries("parked.*")) {
    parked.push({ instanceId: key.slice("parked.".length), ...value });
  }
  return parked;
}

async function all<T>(
  { bus, names }: ObservedInstallation,
  bucket: "services" | "workers" | "sessions",
  schema: z.ZodType<T>,
): Promise<WrittenEntry<T>[]> {
  const found: WrittenEntry<T>[] = [];
  const typed = new TypedBucket<T>(new Bucket(bus, names.bucket(bucket)), schema, silent);
  for await (const { value, at } of typed.entries()) found.push({ value, at });
  return found;
}
