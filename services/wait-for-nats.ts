/** What a service needs NATS for before it is ready: tried again while there is none, as long as `NATS_WAIT` allows. */
import { type Fault, isFault } from "../shared/errors/index.ts";
import { keepingAlive, type Runtime, sleep } from "../shared/runtime/index.ts";

const againAfterMs = 500;

export interface Waiting {
  runtime: Runtime;
  /** Aborts when the service is told to stop. */
  signal: AbortSignal;
  /** `Infinity`: for ever. */
  waitMs: number;
}

/** Undefined: told to stop before it worked. What only a person can put right is thrown at once. */
export async function waitForNats<T>(
  act: () => Promise<T>,
  { runtime, signal, waitMs }: Waiting,
): Promise<T | undefined> {
  const deadline = runtime.clock.monotonic() + waitMs;
  let told: string | undefined;
  while (!signal.aborted) {
    try {
      return await act();
    } catch (error) {
      if (!mayPass(error) || runtime.clock.monotonic() + againAfterMs > deadline) throw error;
      const { code } = error;
      if (code !== told) {
        const howLong = Number.isFinite(waitMs) ? `, at most ${waitMs / 1000} s (NATS_WAIT)` : "";
        const message = `${error.message}; waiting for it${howLong}`;
        runtime.announce({ kind: "fault", where: "connect", code, message });
      }
      told = code;
      await keepingAlive(sleep(runtime.clock, againAfterMs, signal));
    }
  }
  return undefined;
}

/** A server that is not there yet, or has no leader for a stream yet. Wrong credentials do not pass. */
const mayPass = (error: unknown): error is Fault =>
  isFault(error) && (error.kind === "transient" || error.code === "nats_unreachable");
