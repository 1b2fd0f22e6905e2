/** The first connection of a service that answers without one: it is tried for until somebody says stop. */
import type { Bus } from "../shared/bus/index.ts";
import { type Fault, isFault } from "../shared/errors/index.ts";
import { type Runtime, sleep } from "../shared/runtime/index.ts";

const againAfterMs = 500;

/** Undefined: told to stop before there was one. What only a person can put right is thrown, as without waiting. */
export async function firstBus(
  open: () => Promise<Bus>,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Bus | undefined> {
  let told: string | undefined;
  while (!signal.aborted) {
    try {
      return await open();
    } catch (error) {
      if (!mayPass(error)) throw error;
      const { code, message } = error;
      if (code !== told) runtime.announce({ kind: "fault", where: "connect", code, message });
      told = code;
      await sleep(runtime.clock, againAfterMs, signal);
    }
  }
  return undefined;
}

/** A server that is not there yet, or has no leader for a stream yet. Wrong credentials do not pass. */
const mayPass = (error: unknown): error is Fault =>
  isFault(error) && (error.kind === "transient" || error.code === "nats_unreachable");
