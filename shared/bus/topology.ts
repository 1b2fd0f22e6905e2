/** Streams and buckets as data. The first process creates them; several may do so at once (idempotent). */
import { Fault } from "../errors/index.ts";
import type { Bus, StreamSpec } from "./bus.ts";
import { type BucketName, bucketStream, type Subjects, subjects } from "./subjects.ts";

export interface TopologyOptions {
  partitions: number;
  historyShards: number;
  replicas: number;
}

export const defaultTopology: TopologyOptions = { partitions: 16, historyShards: 16, replicas: 1 };

const day = 86_400_000;

interface BucketSpec {
  name: BucketName;
  /** Keys may expire; the expiry marker is kept this long. */
  markerTtlMs?: number;
}

const buckets: BucketSpec[] = [
  { name: "leases", markerTtlMs: day },
  { name: "engine", markerTtlMs: day },
  { name: "workers", markerTtlMs: 60_000 },
  { name: "services", markerTtlMs: 60_000 },
  { name: "heartbeats", markerTtlMs: 60_000 },
  { name: "sessions", markerTtlMs: 60_000 },
  { name: "limits", markerTtlMs: 60_000 },
  { name: "instances" },
  { name: "settings" },
];

/** The buckets whose entries may have a time to live. */
export const expiringBuckets = (names: Subjects): string[] => [
  ...new Set(
    buckets
      .filter(({ markerTtlMs }) => markerTtlMs !== undefined)
      .map(({ name }) => (name === "engine" ? names.engineBucket : names.bucket(name))),
  ),
];

export function topology(names: Subjects, options: TopologyOptions): StreamSpec[] {
  // People name dead letters by their sequence, so their sequences stay short.
  return streamsOf(names, options).map((spec) => ({
    ...spec,
    sequencesByTime: spec.name !== names.deadStream,
  }));
}

/**
 * Names the streams of the installation that owns this lease bucket. Derived from the name, because not every role may
 * ask the server for a list.
 */
export function streamsWithLeaseBucket(bucket: string): string[] {
  const names = subjects(bucket.replace(/_?(?:leases|engine)$/, ""));
  return topology(names, defaultTopology).map(({ name }) => name);
}

function streamsOf(names: Subjects, options: TopologyOptions): StreamSpec[] {
  const { replicas } = options;
  const dedupeWindowMs = 120_000;
  return [
    {
      name: names.inboxStream,
      subjects: names.inboxSubjects,
      retention: "workqueue",
      transform: names.inboxTransform(options.partitions),
      ...(names.isFormer
        ? { schedules: true }
        : { sources: [{ stream: names.timersStream, ...names.firedTransform(options.partitions) }] }),
      dedupeWindowMs,
      replicas,
      metadata: { partitions: String(options.partitions) },
    },
    ...(names.isFormer ? [] : [timers(names, dedupeWindowMs, replicas)]),
    {
      name: names.activitiesStream,
      subjects: names.activitiesSubjects,
      retention: "workqueue",
      schedules: true,
      dedupeWindowMs,
      replicas,
    },
    {
      name: names.claimsStream,
      subjects: names.claimsSubjects,
      retention: "workqueue",
      dedupeWindowMs,
      replicas,
    },
    {
      name: names.sessionsStream,
      subjects: names.sessionsSubjects,
      retention: "workqueue",
      schedules: true,
      dedupeWindowMs,
      replicas,
    },
    {
      // Limited per task, in total and in time. Retention purges a finished instance's chunks sooner.
      name: names.streamsStream,
      subjects: names.streamsSubjects,
      retention: "limits",
      maxMsgsPerSubject: 10_000,
      maxAgeMs: day,
      maxBytes: 256 * 1024 * 1024,
      dedupeWindowMs,
      replicas,
    },
    {
      name: names.deadStream,
      subjects: names.deadSubjects,
      retention: "limits",
      maxAgeMs: 30 * day,
      maxBytes: 256 * 1024 * 1024,
      dedupeWindowMs,
      replicas,
    },
    {
      name: names.asideStream,
      subjects: names.asideSubjects,
      retention: "limits",
      dedupeWindowMs,
      replicas,
    },
    {
      name: names.auditStream,
      subjects: names.auditSubjects,
      retention: "limits",
      maxAgeMs: 90 * day,
      maxBytes: 64 * 1024 * 1024,
      replicas,
    },
    ...Array.from({ length: options.historyShards }, (_, shard) => ({
      ...sharedHistory(names, shard, replicas),
      // A service with another number of shards would look for histories in the wrong stream: it is refused.
      metadata: { shards: String(options.historyShards) },
    })),
    blobStore(names.blobBucket, replicas),
    ...buckets
      .filter(({ name }) => name !== "engine" || names.bucket(name) === names.engineBucket)
      .map((bucket) => bucketSpec(names, bucket, replicas)),
  ];
}

/**
 * Only the engine writes here: a client that may write schedules could publish to every subject of the stream
 * and remove all of it.
 */
const timers = (names: Subjects, dedupeWindowMs: number, replicas: number): StreamSpec => ({
  name: names.timersStream,
  subjects: names.timersSubjects,
  retention: "limits",
  schedules: true,
  timesToLive: true,
  dedupeWindowMs,
  replicas,
});

export function sharedHistory(names: Subjects, shard: number, replicas: number): StreamSpec {
  return {
    name: names.sharedHistoryStream(shard),
    subjects: [names.sharedHistoryShard(shard)],
    retention: "limits",
    replicas,
  };
}

export function ownHistory(names: Subjects, instanceId: string, replicas: number): StreamSpec {
  return {
    name: names.ownHistoryStream(instanceId),
    subjects: [names.ownHistory(instanceId)],
    retention: "limits",
    immutable: true,
    sequencesByTime: true,
    replicas,
  };
}

/** Big values, in the format of NATS object stores. */
export const blobStore = (bucket: string, replicas: number): StreamSpec => ({
  name: `OBJ_${bucket}`,
  subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
  retention: "limits",
  sequencesByTime: true,
  replicas,
});

function bucketSpec(names: Subjects, bucket: BucketSpec, replicas: number): StreamSpec {
  const full = names.bucket(bucket.name);
  return {
    name: bucketStream(full),
    subjects: [`$KV.${full}.>`],
    retention: "limits",
    maxMsgsPerSubject: 1,
    ...(bucket.markerTtlMs === undefined ? {} : { markerTtlMs: bucket.markerTtlMs }),
    replicas,
  };
}

/**
 * The names this installation uses. An installation made before 0.2 keeps its layout and is recognised by the subjects
 * of its inbox. A missing bucket would be no proof: it may have been deleted since.
 */
export async function installedNames(bus: Pick<Bus, "streamInfo">, names: Subjects): Promise<Subjects> {
  const former = subjects(names.prefix, { former: true });
  const inbox = await bus.streamInfo(names.inboxStream);
  const isFormer = inbox !== undefined && former.inboxSubjects.every((one) => inbox.subjects.includes(one));
  return isFormer ? former : names;
}

/**
 * Creates nothing: for processes without the permission, after `holdfast provision` has created the streams.
 */
export async function checkTopology(bus: Bus, names: Subjects, options: TopologyOptions): Promise<void> {
  const specs = topology(await installedNames(bus, names), options);
  const found = await Promise.all(
    specs.map(async (spec) => ({ spec, info: await bus.streamInfo(spec.name) })),
  );
  const missing = found.filter(({ info }) => !info).map(({ spec }) => spec.name);
  if (missing.length > 0) {
    throw new Fault("transient", {
      code: "not_provisioned",
      message: `${missing.length === specs.length ? "the streams of this installation are" : `${missing.join(", ")} ${missing.length > 1 ? "are" : "is"}`} missing, and this process may not create them (HOLDFAST_PROVISION=never)`,
      hint: "Run `holdfast provision` with a user that may create streams.",
    });
  }
  for (const { spec, info } of found) {
    for (const [key, value] of Object.entries(spec.metadata ?? {})) {
      const there = info?.metadata[key];
      if (there === value) continue;
      throw new Fault("config", {
        code: "stream_mismatch",
        message: `stream ${spec.name} exists with another ${key} (${there ?? "none"}, wanted ${value})`,
        hint: "All services of one installation need the same settings.",
      });
    }
  }
}

export async function ensureTopology(bus: Bus, names: Subjects, options: TopologyOptions): Promise<void> {
  const actual = await installedNames(bus, names);
  const specs = topology(actual, options);
  // These streams record the settings of the installation: a process with other settings is refused before it
  // creates anything.
  const first = new Set([names.inboxStream, names.sharedHistoryStream(0)]);
  const rest = new Set(specs.map(({ name }) => name).filter((name) => !first.has(name)));
  // The inbox has the timers as a source; the server retries a missing source only after a while.
  const earliest = new Set([actual.timersStream].filter((name) => !first.has(name)));
  for (const name of earliest) rest.delete(name);
  for (const group of [earliest, first, rest])
    await Promise.all(specs.filter(({ name }) => group.has(name)).map((spec) => bus.ensureStream(spec)));
}
