/**
 * Waits for NATS before a service is ready: tries again while there is no server, for as long as `NATS_WAIT`
 * allows.
 */
import { type Fault, isFault } from "../shared/errors/index.ts";
import { keepingAlive, type Runtime, sleep } from "../shared/runtime/index.ts";

const retryEveryMs = 500;

interface WaitForNatsOptions {
  runtime: Runtime;
  /** Aborts when the service must stop. */
  signal: AbortSignal;
  /** `Infinity`: wait for ever. */
  waitMs: number;
}

/**
 * Returns undefined if the service must stop first. A fault that only a person can repair is thrown at once.
 */
export async function waitForNats<T>(
  act: () => Promise<T>,
  { runtime, signal, waitMs }: WaitForNatsOptions,
): Promise<T | undefined> {
  const deadline = runtime.clock.monotonic() + waitMs;
  let announcedCode: string | undefined;
  while (!signal.aborted) {
    try {
      return await act();
    } catch (error) {
      if (!mayPass(error) || runtime.clock.monotonic() + retryEveryMs > deadline) throw error;
      const { code } = error;
      if (code !== announcedCode) {
        const howLong = Number.isFinite(waitMs) ? `, at most ${waitMs / 1000} s (NATS_WAIT)` : "";
        const message = `${error.message}; waiting for it${howLong}`;
        runtime.announce({ kind: "fault", where: "connect", code, message });
      }
      announcedCode = code;
      await keepingAlive(sleep(runtime.clock, retryEveryMs, signal));
    }
  }
  return undefined;
}

/**
 * True for a server that is not there yet, or has no leader for a stream yet. Wrong credentials do not pass.
 */
const mayPass = (error: unknown): error is Fault =>
  isFault(error) && (error.kind === "transient" || error.code === "nats_unreachable");
