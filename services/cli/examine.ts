/** What can be seen of an installation from outside, as findings. */
import { DeadLetter, ServiceInfo, WorkerInfo } from "../../schemas/index.ts";
import { Bucket, type Bus, decode, type Subjects, TypedBucket, topology } from "../../shared/bus/index.ts";
import { silent } from "../../shared/runtime/index.ts";
import type { EngineConfig } from "../config.ts";

export interface Finding {
  what: string;
  verdict: "good" | "note" | "wrong";
  found: string;
  /** What to do about it. */
  todo?: string;
}

export interface Examination {
  bus: Bus;
  names: Subjects;
  config: EngineConfig;
  /** When the server writes to disk, where we know. */
  sync: string | undefined;
  now: number;
}

export async function examine(examination: Examination): Promise<Finding[]> {
  const parts = await Promise.all([
    server(examination),
    streams(examination),
    histories(examination),
    queues(examination),
    deadLetters(examination),
    services(examination),
    workers(examination),
  ]);
  return parts.flat();
}

function server({ bus, sync }: Examination): Finding[] {
  const seen: Finding = {
    what: "NATS server",
    verdict: "good",
    found: `version ${bus.serverVersion()}, JetStream`,
  };
  const disk: Finding =
    sync === "always"
      ? { what: "disk", verdict: "good", found: "every write is flushed before it is acknowledged" }
      : sync === undefined
        ? {
            what: "disk",
            verdict: "note",
            found: "clients cannot see when this server flushes",
            todo: "a server of one node needs `sync_interval: always` to survive a power cut",
          }
        : {
            what: "disk",
            verdict: "note",
            found: "flushed every two minutes: survives the death of any process, not a power cut",
          };
  return [seen, disk];
}

async function streams({ bus, names, config }: Examination): Promise<Finding[]> {
  const wanted = topology(names, {
    partitions: config.partitions,
    historyShards: config.history.shards,
    replicas: config.replicas,
  });
  const infos = await Promise.all(
    wanted.map(async ({ name }) => ({ name, info: await bus.streamInfo(name) })),
  );
  const missing = infos.filter(({ info }) => info === undefined).map(({ name }) => name);
  if (missing.length > 0) {
    return [
      {
        what: "streams",
        verdict: "wrong",
        found: `missing: ${missing.join(", ")}`,
        todo: "start a service; whichever comes first creates them",
      },
    ];
  }
  const bytes = infos.reduce((sum, { info }) => sum + (info?.bytes ?? 0), 0);
  return [
    { what: "streams", verdict: "good", found: `${infos.length}, ${(bytes / 1_048_576).toFixed(1)} MiB` },
  ];
}

async function histories({ bus, names, config }: Examination): Promise<Finding[]> {
  const own = (await bus.streamNames(names.ownHistories)).length;
  const { layout, maxOwnStreams } = config.history;
  if (layout === "shared")
    return [{ what: "histories", verdict: "good", found: `shared streams, ${own} own ones` }];
  const found = `${own} of at most ${maxOwnStreams} streams of their own`;
  if (own < maxOwnStreams) return [{ what: "histories", verdict: "good", found }];
  return [
    {
      what: "histories",
      verdict: "note",
      found,
      todo: "new instances go to the shared streams; shorter retention or HISTORY_MAX_STREAMS changes that",
    },
  ];
}

const backlog = 10_000;

async function queues({ bus, names }: Examination): Promise<Finding[]> {
  const list = [names.inboxStream, names.activitiesStream, names.claimsStream, names.sessionsStream];
  const all = await Promise.all(
    list.map(async (stream) => {
      const info = await bus.streamInfo(stream);
      if (!info) return [];
      const consumers = await bus.consumers(stream);
      const pending = consumers.reduce((sum, consumer) => sum + consumer.pending, 0);
      const running = consumers.reduce((sum, consumer) => sum + consumer.ackPending, 0);
      const unserved = consumers.length === 0 && info.messages > 0;
      const finding: Finding = {
        what: stream,
        verdict: unserved || pending > backlog ? "wrong" : "good",
        found: `${info.messages} messages, ${pending} waiting, ${running} being worked on, ${consumers.length} consumers`,
        ...(unserved ? { todo: "nobody reads it: is the service running?" } : {}),
      };
      return [finding];
    }),
  );
  return all.flat();
}

async function deadLetters({ bus, names }: Examination): Promise<Finding[]> {
  const info = await bus.streamInfo(names.deadStream);
  if (!info || info.messages === 0) return [{ what: "dead letters", verdict: "good", found: "none" }];
  const [last] = ((await bus.read(names.deadStream, `${names.deadSubjects[0]}`, info.lastSeq)) ?? []).slice(
    -1,
  );
  const letter = last && decode(DeadLetter, last.body);
  const latest =
    letter?.kind === "ok" ? `; the latest: ${letter.value.reason.code}, ${letter.value.reason.message}` : "";
  return [{ what: "dead letters", verdict: "note", found: `${info.messages}${latest}` }];
}

async function services({ bus, names, now }: Examination): Promise<Finding[]> {
  const bucket = new TypedBucket<ServiceInfo>(new Bucket(bus, names.bucket("services")), ServiceInfo, silent);
  const alive: ServiceInfo[] = [];
  for await (const { value } of bucket.entries()) alive.push(value);
  const finding = (service: ServiceInfo["service"], needed: boolean, todo: string): Finding => {
    const those = alive.filter((info) => info.service === service);
    if (those.length === 0) {
      return { what: `${service}s`, verdict: needed ? "wrong" : "note", found: "none alive", todo };
    }
    const seen = those.map((info) => `${info.host}/${info.pid} (${Math.max(0, now - info.seenAt)} ms ago)`);
    return { what: `${service}s`, verdict: "good", found: `${those.length}: ${seen.join(", ")}` };
  };
  return [
    finding("orchestrator", true, "no instance makes progress; run `holdfast orchestrator --app <module>`"),
    finding("watcher", false, "lost sessions are noticed late; run `holdfast watcher`"),
  ];
}

async function workers({ bus, names }: Examination): Promise<Finding[]> {
  const bucket = new TypedBucket<WorkerInfo>(new Bucket(bus, names.bucket("workers")), WorkerInfo, silent);
  const alive: WorkerInfo[] = [];
  for await (const { value } of bucket.entries()) alive.push(value);
  if (alive.length === 0) {
    const todo = "no activity runs; run `holdfast worker --app <module>`";
    return [{ what: "workers", verdict: "wrong", found: "none alive", todo }];
  }
  const sessions = alive.reduce((sum, worker) => sum + worker.slots.sessions.used, 0);
  return [{ what: "workers", verdict: "good", found: `${alive.length}, holding ${sessions} sessions` }];
}
