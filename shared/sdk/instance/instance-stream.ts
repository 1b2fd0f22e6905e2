/**
 * Reads the chunks that an instance's activities and calls write with `ctx.stream.write`: from the beginning
 * or from an offset, then live.
 */
import { EventId, InstanceId, type StreamCheck, StreamChecked, StreamChunk } from "../../../schemas/index.ts";
import {
  type Bus,
  decode,
  encode,
  type Payloads,
  type StoredMessage,
  type Subjects,
} from "../../bus/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { type Instances, isTerminal } from "../client/instances.ts";

/** Where to begin in a stream, and how long to follow it. */
export interface StreamOptions {
  /** Only chunks after this `offset`. */
  after?: number | undefined;
  /** Continue with new chunks until the instance ends. Default true. */
  follow?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** One chunk that a call or an activity wrote, with its offset and the attempt that wrote it. */
export interface StreamItem {
  /** Grows with every chunk; pass it as `after` to continue after this item. */
  offset: number;
  execution: number;
  /** Event id of the activity or call that wrote it. */
  of: number;
  attempt: number;
  /** Counts the runs of the attempt. A task that runs again writes its chunks again, under the next number. */
  run: number;
  index: number;
  at: number;
  chunk: unknown;
}

interface InstanceStreamDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  payloads: Payloads;
  instances: Instances;
}

const lookEveryMs = 1_500;
/** A chunk has at most 256 KiB: this many fit into the memory of any reader, however long the stream is. */
const pageMessages = 100;
const checkMs = 2_000;

export async function* readStream(
  deps: InstanceStreamDeps,
  instanceId: string,
  { after = 0, follow = true, signal }: StreamOptions,
): AsyncGenerator<StreamItem, void, undefined> {
  const { bus, names, runtime, instances } = deps;
  const read = (fromSeq: number) =>
    bus.read(names.streamsStream, names.streamsOf(instanceId), fromSeq, pageMessages);
  let offset = after;
  const believes = streamChecker(deps, instanceId);
  let changed = new AbortController();
  const wake = () => changed.abort();
  // Notices only wake the reader; the chunks are read from the stream, so none is missed or repeated.
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
      // Read before the chunks: chunks written before the end are stored when the end is visible.
      const summary = follow ? await instances.summary(instanceId) : undefined;
      let page: StoredMessage[];
      do {
        page = (await read(offset + 1)) ?? [];
        for (const message of page) {
          offset = message.seq;
          const item = await itemOf(deps, message, believes);
          if (item) yield item;
        }
      } while (page.length >= pageMessages);
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
  believes: ReturnType<typeof streamChecker>,
): Promise<StreamItem | undefined> {
  const [execution, of] = message.subject.split(".").slice(-2).map(Number);
  const decoded = decode(StreamChunk, message.body);
  if (decoded.kind === "invalid" || execution === undefined || of === undefined) return undefined;
  const { attempt, run, index, at, chunk, capability } = decoded.value;
  if (!(await believes({ execution, of: EventId.parse(of), attempt, run, capability }))) return undefined;
  return { offset: message.seq, execution, of, attempt, run, index, at, chunk: await payloads.unwrap(chunk) };
}

/**
 * Asks an orchestrator, once for each run, if the chunks with this capability come from a worker that was given the task
 * (C1). If no orchestrator answers, the installation has no keys or no orchestrator is alive: then the chunks are
 * accepted unchecked.
 */
function streamChecker({ bus, names }: InstanceStreamDeps, instanceId: string) {
  const known = new Map<string, Promise<boolean>>();
  let nobody = false;
  const ask = async (about: Omit<StreamCheck, "v" | "instanceId">): Promise<boolean> => {
    const question: StreamCheck = { v: 1, instanceId: InstanceId.parse(instanceId), ...about };
    const reply = await bus.request(names.streamCheck, encode(question), { timeoutMs: checkMs });
    nobody = reply.kind === "nobody";
    const answer = reply.kind === "reply" ? decode(StreamChecked, reply.body) : undefined;
    return answer?.kind !== "ok" || answer.value.believed;
  };
  return (about: Omit<StreamCheck, "v" | "instanceId">): Promise<boolean> | true => {
    if (nobody) return true;
    const { execution, of, attempt, run, capability } = about;
    const key = `${execution}.${of}.${attempt}.${run}.${capability}`;
    const asked = known.get(key) ?? ask(about);
    known.set(key, asked);
    return asked;
  };
}
