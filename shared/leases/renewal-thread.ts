/**
 * The renewal thread (S8): a keeper with a connection of its own, which users' code can neither block nor
 * delay. It renews only while the main loop proves that it runs: a holder that cannot act must not look alive.
 */

import { parentPort, workerData } from "node:worker_threads";
import type { LeaseValue } from "../../schemas/index.ts";
import { connectBus } from "../bus/index.ts";
import { messageOf } from "../errors/index.ts";
import { type Happening, type Runtime, setupOf, systemRandom, type Timer } from "../runtime/index.ts";
import type { Lease } from "./lease.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { processClock } from "./process-clock.ts";
import { reportLost } from "./report-lost.ts";
import { SharedInstant } from "./shared-instant.ts";
import {
  type Answer,
  type FromThread,
  type ThreadSetup,
  type ToThread,
  toPlainFault,
} from "./thread-protocol.ts";

interface RenewedLease {
  lease: Lease;
  heldUntil: SharedInstant;
  /** The session and instance to notify if the lease is a session's. */
  session: LeaseValue["session"];
}

type Remembered = Pick<Extract<ToThread, { kind: "keep" }>, "id" | "value" | "heldUntil">;

interface Running {
  receive(message: ToThread): void;
  readonly skewMs: number;
}

async function run(setup: ThreadSetup, send: (message: FromThread) => void): Promise<Running> {
  const announce = (happening: Happening) => send({ kind: "happened", happening: sendable(happening) });
  const runtime: Runtime = { clock: processClock, random: systemRandom, announce };
  const beat = new SharedInstant(setup.beat);
  const silentMs = () => processClock.monotonic() - beat.get();
  const isStalled = (lease: Lease) => silentMs() > (setup.stallLimitMs ?? lease.ttlMs);
  // The process already had a connection, so NATS was there: this connection waits for the server as that one
  // does.
  const bus = await connectBus({ ...setup.connection, waitForServer: true, announce });
  const byId = new Map<number, RenewedLease>();
  const idOf = new Map<Lease, number>();
  const keeper = new LeaseKeeper({
    bus,
    bucket: setup.bucket,
    runtime,
    ttlMs: setup.ttlMs,
    ...(setup.giveUpAfterMs === undefined ? {} : { giveUpAfterMs: setup.giveUpAfterMs }),
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
    if (id !== undefined) send({ kind: "lost", lease: id, why });
  });

  /**
   * Gives up the leases of a stalled process. Checked often, so renewals need not check: a lease renewed a
   * moment before is given up all the same.
   *
   * A main loop that has been blocked for too long cannot act, and no other process should wait until its
   * leases expire: this thread releases them and reports the reason to the instances.
   */
  const giveUpStalled = async (id: number, { lease, session }: RenewedLease): Promise<void> => {
    const blockedMs = Math.round(silentMs());
    forget(lease);
    send({ kind: "lost", lease: id, why: "stalled" });
    announce({ kind: "lease.lost", key: lease.key, epoch: lease.epoch, why: "stalled" });
    const released = await keeper.release(lease);
    if (released !== "released" || !session || setup.prefix === undefined) return;
    const detail = `code that runs inline has blocked its worker's event loop for ${blockedMs} ms`;
    await reportLost(bus, setup.prefix, session, { epoch: lease.epoch, reason: "hung", detail });
  };
  const lookEveryMs = Math.min(setup.ttlMs, setup.stallLimitMs ?? setup.ttlMs, 5000) / 10;
  let looking: Timer | undefined;
  const look = () => {
    for (const [id, held] of [...byId]) {
      // After a pause of the whole process the lease has expired, and the keeper reports that.
      if (!isStalled(held.lease) || !keeper.isHeld(held.lease)) continue;
      giveUpStalled(id, held).catch((error: unknown) => {
        const message = messageOf(error);
        announce({ kind: "fault", where: "leases", code: "stall_untold", message });
      });
    }
    looking = processClock.after(lookEveryMs, look);
  };

  const claim = async (message: Extract<ToThread, { kind: "claim" }>): Promise<Answer> => {
    const outcome = await keeper.claim(message.key, message.value, message.ttlMs);
    if (outcome.kind === "taken") return outcome;
    const { lease } = outcome;
    remember(lease, message);
    return { kind: "granted", epoch: lease.epoch, ttlMs: lease.ttlMs };
  };
  const remember = (lease: Lease, { id, value, heldUntil: buffer }: Remembered): void => {
    const heldUntil = new SharedInstant(buffer);
    heldUntil.set(keeper.deadlineOf(lease) ?? 0);
    byId.set(id, { lease, heldUntil, session: value.session });
    idOf.set(lease, id);
  };
  const release = async (id: number): Promise<Answer> => {
    const held = byId.get(id);
    if (held === undefined) return { kind: "gone" };
    forget(held.lease);
    return { kind: await keeper.release(held.lease) };
  };
  const answer = (id: number, work: Promise<Answer>) =>
    work.then(
      (outcome) => send({ kind: "answer", id, answer: outcome }),
      (error) => send({ kind: "answer", id, answer: { kind: "failed", fault: toPlainFault(error) } }),
    );

  await keeper.start();
  look();
  const receive = (message: ToThread): void => {
    switch (message.kind) {
      case "claim":
        return void answer(message.id, claim(message));
      case "keep":
        return remember(keeper.keep(message.claimed), message);
      case "release":
        return void answer(message.id, release(message.lease));
      case "stop":
        looking?.cancel();
        return void keeper
          .stop()
          .then(() => bus.close())
          .finally(() => send({ kind: "stopped" }));
    }
  };
  return { receive, skewMs: keeper.skewMs };
}

/** A happening may carry any error; not every error can be sent to another thread. */
function sendable(happening: Happening): Happening {
  return happening.kind === "fault" ? { ...happening, error: undefined } : happening;
}

/** Never settles outside a thread. */
export const setup = setupOf<ThreadSetup>(workerData);

if (parentPort) {
  const port = parentPort;
  const send = (message: FromThread) => port.postMessage(message);
  setup
    .then((given) => run(given, send))
    .then(
      ({ receive, skewMs }) => {
        port.on("message", receive);
        send({ kind: "ready", skewMs });
      },
      (error) => send({ kind: "refused", fault: toPlainFault(error) }),
    );
}
