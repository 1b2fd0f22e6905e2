/** Streams and buckets as data. Whoever starts first creates them; everybody may, at once (idempotent). */
import type { Bus, StreamSpec } from "./bus.ts";
import { type BucketName, bucketStream, type Subjects } from "./subjects.ts";

export interface TopologyOptions {
  partitions: number;
  historyShards: number;
  replicas: number;
}

export const defaultTopology: TopologyOptions = { partitions: 16, historyShards: 16, replicas: 1 };

const day = 86_400_000;

interface BucketSpec {
  name: BucketName;
  /** Keys may expire; the marker of an expiry is kept this long. */
  markerTtlMs?: number;
}

const buckets: BucketSpec[] = [
  { name: "leases", markerTtlMs: day },
  { name: "workers", markerTtlMs: 60_000 },
  { name: "services", markerTtlMs: 60_000 },
  { name: "heartbeats", markerTtlMs: 60_000 },
  { name: "sessions", markerTtlMs: 60_000 },
  { name: "limits", markerTtlMs: 60_000 },
  { name: "instances" },
  { name: "settings" },
];

export function topology(names: Subjects, options: TopologyOptions): StreamSpec[] {
  // People name dead letters by their sequence: those stay short.
  return streamsOf(names, options).map((spec) => ({
    ...spec,
    sequencesByTime: spec.name !== names.deadStream,
  }));
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
      schedules: true,
      dedupeWindowMs,
      replicas,
      metadata: { partitions: String(options.partitions) },
    },
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
      // Bounded three ways: per task, over all, and in time. Retention purges a finished instance's part sooner.
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
      // With another number of shards histories would be looked for in the wrong one: such a service is refused.
      metadata: { shards: String(options.historyShards) },
    })),
    ...buckets.map((bucket) => bucketSpec(names, bucket, replicas)),
  ];
}

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

export async function ensureTopology(bus: Bus, names: Subjects, options: TopologyOptions): Promise<void> {
  const specs = topology(names, options);
  // These say with which settings the installation was made: whoever has others is refused before it makes anything.
  const first = new Set([names.inboxStream, names.sharedHistoryStream(0)]);
  await Promise.all(specs.filter((spec) => first.has(spec.name)).map((spec) => bus.ensureStream(spec)));
  await Promise.all(specs.filter((spec) => !first.has(spec.name)).map((spec) => bus.ensureStream(spec)));
}
