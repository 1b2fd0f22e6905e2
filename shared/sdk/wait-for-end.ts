/**
 * Waits for an instance to end: told by a notice, and looking by itself from time to time, since notices may be lost.
 * A server that is away is no answer: the wait goes on until its own time is over.
 */
import { InstanceSummary } from "../../schemas/index.ts";
import { type Bus, type CoreMessage, decode, type Subjects } from "../bus/index.ts";
import { isFault } from "../errors/index.ts";
import { type Runtime, sleep } from "../runtime/index.ts";
import { type Instances, isTerminal } from "./instances.ts";

export interface WaitDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  instances: Instances;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** There is such an instance, even if nothing is to be seen of it yet. */
  known: boolean;
  /** A moment ago, by us: nothing is to be seen of its end yet, most likely. */
  justStarted?: boolean | undefined;
  /** Give up on one that is parked: it may stay so until somebody deploys. */
  untilParked?: boolean | undefined;
}

export type Waited =
  | { kind: "ended"; summary: InstanceSummary }
  /** Not in time; the latest that is known. */
  | { kind: "running"; summary: InstanceSummary | undefined }
  | { kind: "unknown" };

const lookEveryMs = 1_500;
/** What was only just started tells of its end by its notice, unless it came to it before we listened. */
const firstLookMs = 200;
/** The notice may overtake the summary on its way to a replica. */
const lookAgainMs = 15;
const looksAfterNotice = 20;

export async function waitForEnd(
  { bus, names, runtime, instances }: WaitDeps,
  instanceId: string,
  { timeoutMs, signal, known, justStarted = false, untilParked = false }: WaitOptions,
): Promise<Waited> {
  const deadline = runtime.clock.monotonic() + timeoutMs;
  let wake: () => void = () => undefined;
  /** Until the time is over or there is something new. */
  const nap = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = runtime.clock.after(ms, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  let quickLooks = 0;
  /** Looks in a row that found it parked: what is only held up for a moment is not given up on. */
  let parkedLooks = 0;
  const onAbort = () => wake();
  signal?.addEventListener("abort", onAbort, { once: true });
  const patiently = async <T>(ask: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const left = deadline - runtime.clock.monotonic();
        if (!isFault(error, "transient") || left <= 0 || signal?.aborted) throw error;
        await sleep(runtime.clock, Math.min(left, lookEveryMs), signal);
      }
    }
  };
  let told: InstanceSummary | undefined;
  const onNotice = ({ body }: CoreMessage) => {
    // Small ends are in the notice itself; for the others it says where to look.
    const summary = decode(InstanceSummary, body);
    if (summary.kind === "ok") told = summary.value;
    else quickLooks = looksAfterNotice;
    wake();
  };
  // Asked for before the first look, on the same connection: an end in between is not missed.
  const subscription = await patiently(() =>
    bus.subscribe(names.notice(instanceId, "ended"), { unconfirmed: true }, onNotice),
  );
  try {
    for (let looks = 0; ; looks++) {
      if (looks === 0 && justStarted) await nap(firstLookMs);
      const summary = told ?? (await patiently(() => instances.summary(instanceId)));
      if (summary && isTerminal(summary.status)) return { kind: "ended", summary };
      if (!summary && !known && looks === 0 && !(await patiently(() => instances.find(instanceId))))
        return { kind: "unknown" };
      parkedLooks = untilParked && summary?.status === "parked" ? parkedLooks + 1 : 0;
      const left = deadline - runtime.clock.monotonic();
      if (left <= 0 || signal?.aborted || parkedLooks > 1) return { kind: "running", summary };
      const pause = quickLooks > 0 ? lookAgainMs : lookEveryMs;
      if (quickLooks > 0) quickLooks--;
      if (!told) await nap(Math.min(left, pause));
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Nobody has to wait for the server to forget us.
    void subscription.stop();
  }
}
