/** The streams of the floor: like the engine's, under other names, with only the settings the floor uses. */
import type { Layout } from "../options.ts";
import type { FloorLink } from "./link.ts";

/** As many shared streams as the engine has by default. */
const shards = 16;

function shardOf(id: string): number {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) >>> 0;
  return hash % shards;
}

export const floorNames = {
  inbox: "FLOOR_INBOX",
  work: "FLOOR_WORK",
  sharedStream: (shard: number) => `FLOOR_HISTORY_${shard}`,
  ownStream: (id: string) => `FLOOR_H_${id}`,
  history: (id: string, layout: Layout) =>
    layout === "shared" ? `floor-shared.${shardOf(id)}.${id}` : `floor-history.${id}`,
  start: (id: string) => `floor-inbox.${id}.start`,
  signal: (id: string) => `floor-inbox.${id}.signal`,
  completion: (id: string) => `floor-inbox.${id}.done`,
  task: (worker: number, id: string) => `floor-work.${worker}.${id}`,
  taskConsumer: (worker: number) => `worker-${worker}`,
  direct: (worker: number) => `floor-direct.${worker}`,
  notice: (id: string) => `floor-notices.${id}`,
  /** An instance is ready for its signal. */
  waiting: (id: string) => `floor-waiting.${id}`,
};

const dedupeWindow = 120_000_000_000;
const workQueue = { retention: "workqueue", storage: "file", duplicate_window: dedupeWindow };

export async function createFloorStreams(link: FloorLink, workers: number): Promise<void> {
  const { inbox, work, sharedStream } = floorNames;
  await link.api(`STREAM.CREATE.${inbox}`, { name: inbox, subjects: ["floor-inbox.>"], ...workQueue });
  await link.api(`STREAM.CREATE.${work}`, { name: work, subjects: ["floor-work.>"], ...workQueue });
  for (let shard = 0; shard < shards; shard++) {
    const name = sharedStream(shard);
    const subjects = [`floor-shared.${shard}.*`];
    await link.api(`STREAM.CREATE.${name}`, { name, subjects, retention: "limits", storage: "file" });
  }
  await createConsumer(link, inbox, "orchestrator", "floor-inbox.>");
  for (let worker = 0; worker < workers; worker++) {
    await createConsumer(link, work, floorNames.taskConsumer(worker), `floor-work.${worker}.>`);
  }
}

export const createOwnStream = (link: FloorLink, id: string): Promise<void> =>
  link.api(`STREAM.CREATE.${floorNames.ownStream(id)}`, {
    name: floorNames.ownStream(id),
    subjects: [floorNames.history(id, "per-instance")],
    retention: "limits",
    storage: "file",
    deny_delete: true,
    deny_purge: true,
    allow_direct: true,
  });

export const deleteOwnStream = (link: FloorLink, id: string): Promise<void> =>
  link.api(`STREAM.DELETE.${floorNames.ownStream(id)}`);

const createConsumer = (link: FloorLink, stream: string, name: string, filter: string): Promise<void> =>
  link.api(`CONSUMER.CREATE.${stream}.${name}.${filter}`, {
    stream_name: stream,
    config: {
      durable_name: name,
      name,
      filter_subject: filter,
      ack_policy: "explicit",
      ack_wait: 60_000_000_000,
      max_ack_pending: 20_000,
    },
  });
