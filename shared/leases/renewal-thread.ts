/**
 * The thread that renews (S8): a keeper with a connection of its own, which the user's code can neither block nor
 * delay. It renews only while the main loop proves that it turns; a holder that cannot act must not look alive.
 */
import { parentPort, workerData } from "node:worker_threads";
import { connectBus } from "../bus/index.ts";
import { type Happening, type Runtime, systemRandom } from "../runtime/index.ts";
import type { Lease } from "./lease.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { processClock } from "./process-clock.ts";
import { SharedInstant } from "./shared-instant.ts";
import {
  type Answer,
  type FromThread,
  type ThreadSetup,
  type ToThread,
  toPlainFault,
} from "./thread-protocol.ts";

interface Held {
  lease: Lease;
  heldUntil: SharedInstant;
}

async function run(setup: ThreadSetup, say: (message: FromThread) => void): Promise<(m: ToThread) => void> {
  const announce = (happening: Happening) => say({ kind: "happened", happening: sendable(happening) });
  const runtime: Runtime = { clock: processClock, random: systemRandom, announce };
  const beat = new SharedInstant(setup.beat);
  // The process has had a connection already: NATS was there and will be again, this one is waited for as that is.
  const bus = await connectBus({ ...setup.connection, waitForServer: true, announce });
  const byId = new Map<number, Held>();
  const idOf = new Map<Lease, number>();
  const keeper = new LeaseKeeper({
    bus,
    bucket: setup.bucket,
    runtime,
    ttlMs: setup.ttlMs,
    ...(setup.giveUpAfterMs === undefined ? {} : { giveUpAfterMs: setup.giveUpAfterMs }),
    mayRenew: (lease) => processClock.monotonic() - beat.get() <= (setup.stallLimitMs ?? lease.ttlMs),
    onHeldUntil: (lease, deadline) => byId.get(idOf.get(lease) ?? -1)?.heldUntil.set(deadline),
  });
  const forget = (lease: Lease): number | undefined => {
    const id = idOf.get(lease);
    if (id === undefined) return undefined;
    byId.get(id)?.heldUntil.set(0);
    byId.delete(id);
    idOf.delete(lease);
    return id;
  };
  keeper.onLost((lease, why) => {
    const id = forget(lease);
    if (id !== undefined) say({ kind: "lost", lease: id, why });
  });

  const claim = async (message: Extract<ToThread, { kind: "claim" }>): Promise<Answer> => {
    const outcome = await keeper.claim(message.key, message.value, message.ttlMs);
    if (outcome.kind === "taken") return outcome;
    const { lease } = outcome;
    const heldUntil = new SharedInstant(message.heldUntil);
    heldUntil.set(keeper.deadlineOf(lease) ?? 0);
    byId.set(message.id, { lease, heldUntil });
    idOf.set(lease, message.id);
    return { kind: "granted", epoch: lease.epoch, ttlMs: lease.ttlMs };
  };
  const release = async (id: number): Promise<Answer> => {
    const held = byId.get(id);
    if (held === undefined) return { kind: "gone" };
    forget(held.lease);
    return { kind: await keeper.release(held.lease) };
  };
  const answer = (id: number, work: Promise<Answer>) =>
    work.then(
      (outcome) => say({ kind: "answer", id, answer: outcome }),
      (error) => say({ kind: "answer", id, answer: { kind: "failed", fault: toPlainFault(error) } }),
    );

  await keeper.start();
  return (message) => {
    switch (message.kind) {
      case "claim":
        return void answer(message.id, claim(message));
      case "release":
        return void answer(message.id, release(message.lease));
      case "stop":
        return void keeper
          .stop()
          .then(() => bus.close())
          .finally(() => say({ kind: "stopped" }));
    }
  };
}

/** Errors of all kinds may hang on a happening; not all of them can cross threads. */
function sendable(happening: Happening): Happening {
  return happening.kind === "fault" ? { ...happening, error: undefined } : happening;
}

if (parentPort) {
  const port = parentPort;
  const say = (message: FromThread) => port.postMessage(message);
  run(workerData as ThreadSetup, say).then(
    (hear) => {
      port.on("message", hear);
      say({ kind: "ready" });
    },
    (error) => say({ kind: "refused", fault: toPlainFault(error) }),
  );
}
