/**
 * Finished instances in the state the engine leaves them, written in bulk: one real instance, copied under
 * other ids.
 */
import { bucketStream, bucketSubject, connectBus, subjects } from "../shared/bus/index.ts";
import { ownPlace, sharedPlace } from "../shared/history/locate.ts";
import { silent } from "../shared/runtime/index.ts";
import { FloorLink } from "./floor/link.ts";
import type { Rig } from "./rig.ts";
import { inFlight } from "./stats.ts";

const shards = 16;

export async function storeFinished(rig: Rig, count: number): Promise<void> {
  if (count === 0) return;
  const model = await finishedInstance(rig);
  const link = await FloorLink.connect(rig.nats.url, "bench-store");
  const names = subjects();
  const bucket = names.bucket("instances");
  await inFlight(count, 256, async (index) => {
    const id = `stored-${index}`;
    const { subject } = sharedPlace(names, id, shards);
    const renamed = (text: string): string => text.replaceAll(model.id, id);
    let start: number | undefined;
    for (const [commit, body] of model.commits.entries()) {
      const seq = await link.store(subject, renamed(body), {
        "Holdfast-Commit": `${id}-${commit}`,
        ...(start === undefined
          ? { "Holdfast-Archived": "true" }
          : { "Holdfast-Execution-Start": String(start) }),
      });
      start ??= seq;
    }
    await link.store(bucketSubject(bucket, id), renamed(model.summary));
  });
  await link.nc.close();
}

async function finishedInstance(rig: Rig): Promise<{ id: string; commits: string[]; summary: string }> {
  const handle = await rig.client.start("steps", { n: 3 });
  await handle.result();
  const id = handle.instanceId;
  const names = subjects();
  const bus = await connectBus({ url: rig.nats.url, blobBucket: names.blobBucket, announce: silent });
  const bucket = names.bucket("instances");
  const read = ({ stream, subject }: { stream: string; subject: string }) => bus.read(stream, subject);
  // In either layout a short instance stays in a shared stream; one that ran for longer has a stream of its own.
  const shared = await read(sharedPlace(names, id, shards));
  const commits = shared?.length ? shared : await read(ownPlace(names, id));
  const summary = await bus.last(bucketStream(bucket), bucketSubject(bucket, id));
  await bus.close();
  const text = (body: Uint8Array): string => Buffer.from(body).toString("utf8");
  if (!commits?.length || !summary) throw new Error(`${id} left no history behind`);
  return { id, commits: commits.map((commit) => text(commit.body)), summary: text(summary.body) };
}
