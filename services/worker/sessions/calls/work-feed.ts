/**
 * Work for the sessions held here, through one consumer of this incarnation (S4).
 *
 * WORK-1 Work is acknowledged as soon as this worker has it: it lives and dies with the epoch it was sent to.
 *    If this process dies the session is lost and its instance sends the work anew; a copy kept by the server
 *    could only come late.
 * WORK-2 After a reconnect the consumer is made anew: what the server had sent into the old connection comes
 *    at once.
 * WORK-3 Work that belongs to no session held here, or to another epoch, is dropped and counted (S6).
 */
import { SessionWork } from "../../../../schemas/index.ts";
import {
  buryDelivery,
  type Consumption,
  type Delivery,
  decode,
  RecentKeys,
} from "../../../../shared/bus/index.ts";
import { announceFault, once, type Service, sleep, token } from "../../../../shared/runtime/index.ts";
import { refuseUnreadableCall } from "../../activities/index.ts";
import type { ReplyPath } from "../../lane/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";

/**
 * Work is acknowledged on arrival, so a message without acknowledgement for this long got lost on its way.
 */
const ackWaitMs = 5_000;
/** Pause before a message that only a newer worker can read is delivered again. */
const newerAgainMs = 10_000;
const atATime = 500;
/** Repeated messages are recognised by their sequence; events have no other id. */
const remembered = 4096;

/** `lane`: where the result goes if the work came by the lane. */
export type OnWork = (sessionId: string, work: SessionWork, lane?: ReplyPath) => boolean;

/** Random letters that make the consumer's name secret (SEC-5). */
const secretLength = 22;

export class WorkFeed implements Service {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #onWork: OnWork;
  readonly #consumer: string;
  readonly #stopping = new AbortController();
  readonly #seen = new RecentKeys(remembered);
  #unlisten: () => void = () => undefined;
  #consumption: Consumption | undefined;
  #following: Promise<void> | undefined;

  constructor(deps: SessionDeps, timing: SessionTiming, onWork: OnWork) {
    this.#deps = deps;
    this.#timing = timing;
    this.#onWork = onWork;
    this.#consumer = deps.names.workerConsumer(
      deps.identity.workerId,
      token(deps.runtime.random, secretLength),
    );
  }

  async start(): Promise<void> {
    this.#consumption = await this.#consume();
    this.#following = this.#follow(this.#consumption);
    this.#unlisten = this.#deps.bus.onState((state) => {
      if (state.kind === "reconnected") void this.#remove(); // WORK-2: `#follow` makes it again
    });
  }

  stop = once(async () => {
    this.#unlisten();
    this.#stopping.abort();
    await this.#consumption?.stop();
    await this.#following;
    // This incarnation never comes back; otherwise the server would keep the consumer until it is found
    // inactive.
    await this.#remove();
  });

  async #remove(): Promise<void> {
    const { bus, names } = this.#deps;
    try {
      await bus.deleteConsumer(names.sessionsStream, this.#consumer);
    } catch (error) {
      this.#complain("removal of the work consumer", error);
    }
  }

  async #follow(first: Consumption): Promise<void> {
    let consumption = first;
    while ((await consumption.ended) === "gone" && !this.#stopping.signal.aborted) {
      const again = await this.#consumeAgain();
      if (!again) return;
      this.#consumption = consumption = again;
      // Opened while `stop` waited: no other code ends it.
      if (this.#stopping.signal.aborted) await again.stop();
    }
  }

  async #consumeAgain(): Promise<Consumption | undefined> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        return await this.#consume();
      } catch (error) {
        this.#complain("work of sessions", error);
        await sleep(this.#deps.runtime.clock, 500, signal);
      }
    }
    return undefined;
  }

  async #consume(): Promise<Consumption> {
    const { bus, names, identity } = this.#deps;
    const stream = names.sessionsStream;
    await bus.ensureConsumer({
      stream,
      name: this.#consumer,
      filter: names.sessionWorkOf(identity.workerId),
      ackWaitMs,
      maxAckPending: 10_000,
      inactiveMs: this.#timing.queueInactiveMs,
    });
    const onMessage = (delivery: Delivery) => this.#receive(delivery);
    return bus.consume(stream, this.#consumer, { maxMessages: atATime, onMessage });
  }

  #receive(delivery: Delivery): void {
    const sessionId = sessionOf(delivery.subject);
    const decoded = decode(SessionWork, delivery.body);
    if (decoded.kind === "invalid") {
      if (refuseUnreadableCall(this.#deps, delivery, decoded.message)) return;
      // E1: left for the next holder of this session, which may be newer.
      if (decoded.newer) return delivery.nak(newerAgainMs);
      const burial = { what: "session", id: sessionId, code: "invalid_work" };
      void buryDelivery(this.#deps, delivery, { ...burial, message: decoded.message });
      return;
    }
    delivery.ack(); // WORK-1
    if (!this.#seen.add(String(delivery.seq))) return;
    const work = decoded.value;
    if (this.#onWork(sessionId, work) || work.kind !== "call") return;
    const { instanceId, of } = work.task;
    this.#deps.runtime.announce({ kind: "completion.fenced", instanceId, of, epoch: work.epoch }); // WORK-3
  }

  #complain(where: string, error: unknown): void {
    announceFault(this.#deps.runtime, where, error);
  }
}

const sessionOf = (subject: string): string => subject.slice(subject.lastIndexOf(".") + 1);
