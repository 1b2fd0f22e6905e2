/** What the work of an instance writes with `ctx.stream.write`: from the beginning or a place in it, then live. */
import { StreamChunk } from "../../schemas/index.ts";
import { type Bus, decode, type Payloads, type StoredMessage, type Subjects } from "../bus/index.ts";
import type { Runtime } from "../runtime/index.ts";
import { type Instances, isTerminal } from "./instances.ts";

export interface StreamOptions {
  /** Only what comes behind this `offset`. */
  after?: number | undefined;
  /** Go on with what is written from now on, until the instance ends. Default true. */
  follow?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

export interface StreamItem {
  /** Grows; give it back as `after` to go on behind this item. */
  offset: number;
  execution: number;
  /** Event id of the activity or call that wrote it. */
  of: number;
  attempt: number;
  /** A task that was run again writes anew, under the next run. */
  run: number;
  index: number;
  at: number;
  chunk: unknown;
}

export interface InstanceStreamDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  payloads: Payloads;
  instances: Instances;
}

const lookEveryMs = 1_500;

export async function* readStream(
  deps: InstanceStreamDeps,
  instanceId: string,
  { after = 0, follow = true, signal }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const { bus, names, runtime, instances } = deps;
  const read = (fromSeq: number) => bus.read(names.streamsStream, names.streamsOf(instanceId), fromSeq);
  let offset = after;
  let changed = new AbortController();
  const wake = () => changed.abort();
  // Told of what is new; what it was is read from the stream, so nothing is missed and nothing comes twice.
  const subscriptions = follow
    ? await Promise.all([
        bus.tail(names.streamsStream, names.streamsOf(instanceId), { existing: false, onMessage: wake }),
        bus.subscribe(names.notice(instanceId, "ended"), {}, wake),
      ])
    : [];
  signal?.addEventListener("abort", wake);
  try {
    for (;;) {
      changed = new AbortController();
      // Looked at before the chunks are: what was written before the end is there when the end is seen.
      const summary = follow ? await instances.summary(instanceId) : undefined;
      for (const message of (await read(offset + 1)) ?? []) {
        offset = message.seq;
        const item = await itemOf(deps, message);
        if (item) yield item;
      }
      if (!follow || signal?.aborted || (summary && isTerminal(summary.status))) return;
      await new Promise<void>((resolve) => {
        const timer = runtime.clock.after(lookEveryMs, resolve);
        const end = () => {
          timer.cancel();
          resolve();
        };
        if (changed.signal.aborted) end();
        else changed.signal.addEventListener("abort", end, { once: true });
      });
    }
  } finally {
    signal?.removeEventListener("abort", wake);
    for (const subscription of subscriptions) void subscription.stop();
  }
}

async function itemOf(
  { payloads }: InstanceStreamDeps,
  message: StoredMessage,
): Promise<StreamItem | undefined> {
  const [execution, of] = message.subject.split(".").slice(-2).map(Number);
  const decoded = decode(StreamChunk, message.body);
  if (decoded.kind === "invalid" || execution === undefined || of === undefined) return undefined;
  const { attempt, run, index, at, chunk } = decoded.value;
  return { offset: message.seq, execution, of, attempt, run, index, at, chunk: await payloads.unwrap(chunk) };
}
