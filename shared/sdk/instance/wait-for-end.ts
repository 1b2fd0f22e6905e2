/**
 * Waits for an instance to end: by its notice, and by reading its summary from time to time, since notices
 * may be lost. While the server is unreachable the wait continues until its own timeout.
 */
import { InstanceSummary } from "../../../schemas/index.ts";
import { type Bus, type CoreMessage, decode, type Subjects } from "../../bus/index.ts";
import { isFault } from "../../errors/index.ts";
import { type Runtime, sleep } from "../../runtime/index.ts";
import { type Instances, isTerminal } from "../client/instances.ts";

interface WaitDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
  instances: Instances;
}

export interface WaitOptions {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** The instance is known to exist, even if it has no summary yet. */
  known: boolean;
  /** This client started the instance a moment ago: most likely it has no end to read yet. */
  justStarted?: boolean | undefined;
  /** Stop waiting for a parked instance: it may stay parked until new code is deployed. */
  untilParked?: boolean | undefined;
}

type Waited =
  | { kind: "ended"; summary: InstanceSummary }
  /** The timeout passed first; `summary` is the latest known one. */
  | { kind: "running"; summary: InstanceSummary | undefined }
  | { kind: "unknown" };

const lookEveryMs = 1_500;
/** A notice reports the end of an instance that was just started, unless it ended before the subscription. */
const firstLookMs = 200;
/** The notice may arrive before the summary has reached a replica. */
const lookAgainMs = 15;
const looksAfterNotice = 20;

export async function waitForEnd(
  { bus, names, runtime, instances }: WaitDeps,
  instanceId: string,
  { timeoutMs, signal, known, justStarted = false, untilParked = false }: WaitOptions,
): Promise<Waited> {
  const deadline = runtime.clock.monotonic() + timeoutMs;
  let wake: () => void = () => undefined;
  /** Sleeps for this long, or until a notice arrives. */
  const nap = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = runtime.clock.after(ms, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  let quickLooks = 0;
  /**
   * Consecutive reads that found the instance parked: an instance parked only for a moment is still waited
   * for.
   */
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
  let noticed: InstanceSummary | undefined;
  const onNotice = ({ body }: CoreMessage) => {
    // A small end is in the notice itself; otherwise the summary is read.
    const summary = decode(InstanceSummary, body);
    if (summary.kind === "ok") noticed = summary.value;
    else quickLooks = looksAfterNotice;
    wake();
  };
  // Subscribed before the first read, on the same connection: an end in between is not missed.
  const subscription = await patiently(() =>
    bus.subscribe(names.notice(instanceId, "ended"), { unconfirmed: true }, onNotice),
  );
  try {
    for (let looks = 0; ; looks++) {
      if (looks === 0 && justStarted) await nap(firstLookMs);
      const summary = noticed ?? (await patiently(() => instances.summary(instanceId)));
      if (summary && isTerminal(summary.status)) return { kind: "ended", summary };
      if (!summary && !known && looks === 0 && !(await patiently(() => instances.find(instanceId))))
        return { kind: "unknown" };
      parkedLooks = untilParked && summary?.status === "parked" ? parkedLooks + 1 : 0;
      const left = deadline - runtime.clock.monotonic();
      if (left <= 0 || signal?.aborted || parkedLooks > 1) return { kind: "running", summary };
      const pause = quickLooks > 0 ? lookAgainMs : lookEveryMs;
      if (quickLooks > 0) quickLooks--;
      if (!noticed) await nap(Math.min(left, pause));
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // The caller need not wait until the server has dropped the subscription.
    void subscription.stop();
  }
}
