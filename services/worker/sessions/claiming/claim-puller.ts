import type { Delivery } from "../../../../shared/bus/index.ts";
import { once, sleep } from "../../../../shared/runtime/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import type { Capacity } from "./capacity.ts";

/** Claims requested at a time while they keep coming; one request per claim would cost a round trip each. */
const width = 8;
const patientMs = 20_000;
const hastyMs = 50;
const pauseMs = 200;
/** Over all workers together: claims that wait in the queue count as pending, and many may wait. */
const maxAckPending = 100_000;

interface ClaimPullerInit {
  deps: SessionDeps;
  timing: SessionTiming;
  type: string;
  capacity: Capacity;
  /** How many claims of the type this worker can use now. */
  room: () => number;
  onClaim: (delivery: Delivery) => void;
  onTrouble: (error: unknown) => void;
}

/** Pulls claims of one type, never more at a time than there is room for (CLAIM-1). */
export class ClaimPuller {
  readonly #init: ClaimPullerInit;
  readonly #stopping = new AbortController();
  readonly #pulls = new Set<Promise<void>>();
  #unlisten: () => void = () => undefined;
  #busy = false;

  constructor(init: ClaimPullerInit) {
    this.#init = init;
  }

  async start(): Promise<void> {
    await this.#ensureConsumer();
    this.#unlisten = this.#init.capacity.onRoom(this.fill);
    this.fill();
  }

  /** The bus gives back the claims that the server was delivering to this worker. */
  stop = once(async () => {
    this.#unlisten();
    this.#stopping.abort();
    await Promise.all(this.#pulls);
  });

  /** Call when there may be more room than before. */
  fill = (): void => {
    const { room } = this.#init;
    while (!this.#stopping.signal.aborted) {
      const wanted = Math.min(this.#busy ? width : 1, room());
      if (this.#pulls.size >= wanted) return;
      const pull: Promise<void> = this.#pull(this.#pulls.size === 0 ? patientMs : hastyMs).finally(() => {
        this.#pulls.delete(pull);
        this.fill();
      });
      this.#pulls.add(pull);
    }
  };

  async #pull(expiresMs: number): Promise<void> {
    const { deps, type, onClaim, onTrouble } = this.#init;
    const { bus, names, runtime } = deps;
    const { signal } = this.#stopping;
    try {
      const delivery = await bus.next(names.claimsStream, names.claimConsumer(type), { expiresMs, signal });
      this.#busy = delivery !== undefined;
      if (delivery) onClaim(delivery);
    } catch (error) {
      if (signal.aborted) return;
      onTrouble(error);
      await sleep(runtime.clock, pauseMs, signal);
      if (!signal.aborted) await this.#ensureConsumer().catch(onTrouble);
    }
  }

  #ensureConsumer(): Promise<void> {
    const { deps, timing, type } = this.#init;
    const { bus, names } = deps;
    return bus.ensureConsumer({
      stream: names.claimsStream,
      name: names.claimConsumer(type),
      filter: names.claimsOf(type),
      ackWaitMs: timing.claimAckMs,
      maxAckPending,
    });
  }
}
