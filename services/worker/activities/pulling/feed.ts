/** The flow of one activity's tasks from its shared consumer to this worker. */
import type { Consumption, Delivery } from "../../../../shared/bus/index.ts";
import { announceFault, backoffMs, jittered, sleep, type Timer } from "../../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../../deps.ts";
import { ackWaitFor } from "./ack-wait.ts";
import type { ServedActivity } from "./served.ts";

/** Over all workers together; the server's default of 1000 would cap the whole fleet. */
const maxAckPending = 100_000;
const followEveryMs = 15_000;
const backoff = { initialMs: 100, maxMs: 5_000, factor: 2 };

type State =
  | { kind: "idle" }
  | { kind: "flowing"; consumption: Promise<Consumption | undefined> }
  /** Pulls nothing by itself; `next` asks for one task at a time. */
  | { kind: "resting" }
  | { kind: "stopped" };

export class Feed {
  readonly activity: ServedActivity;
  readonly #deps: WorkerDeps;
  readonly #consumer: string;
  readonly #onMessage: (message: Delivery) => void;
  readonly #stopping = new AbortController();
  #state: State = { kind: "idle" };
  #following: Timer | undefined;
  #ensuredMs = 0;
  /** Numbers the flows, so that the end of an old flow is not taken for the end of the present one. */
  #flows = 0;

  constructor(
    deps: WorkerDeps,
    activity: ServedActivity,
    onMessage: (message: Delivery, feed: Feed) => void,
  ) {
    this.activity = activity;
    this.#deps = deps;
    this.#consumer = deps.names.activityConsumer(activity.queue, activity.name);
    this.#onMessage = (message) => onMessage(message, this);
  }

  get resting(): boolean {
    return this.#state.kind === "resting";
  }

  async start(): Promise<void> {
    await this.#ensureConsumer();
    this.#followAckWait();
    this.flow();
  }

  /** Workers come and go: the wait is lowered after a worker that needed a longer one has left. */
  #followAckWait(): void {
    this.#following = this.#deps.runtime.clock.after(followEveryMs, () => {
      const follow = this.#ackWaitMs() === this.#ensuredMs ? Promise.resolve() : this.#ensureConsumer();
      void follow
        .catch((error: unknown) => this.#announce(error))
        .finally(() => {
          if (this.#state.kind !== "stopped") this.#followAckWait();
        });
    });
  }

  #ackWaitMs(): number {
    const { config, view, identity } = this.#deps;
    const others = (view?.workers() ?? []).filter(({ workerId }) => workerId !== identity.workerId);
    return ackWaitFor(this.activity, config.activities.ackWaitMs, others);
  }

  /** Makes the consumer without starting a flow; `next` asks for one task at a time. */
  async prepare(): Promise<void> {
    await this.#ensureConsumer();
    if (this.#state.kind !== "idle") return;
    this.#state = { kind: "resting" };
    this.#followAckWait();
  }

  /** Lets the server deliver tasks as they come, up to the number of slots. */
  flow(): void {
    if (this.#state.kind === "stopped" || this.#state.kind === "flowing") return;
    this.#state = { kind: "flowing", consumption: this.#consume(++this.#flows) };
  }

  rest(): void {
    if (this.#state.kind !== "flowing") return;
    const { consumption } = this.#state;
    this.#state = { kind: "resting" };
    void consumption.then((flow) => flow?.stop()).catch((error: unknown) => this.#announce(error));
  }

  /** One task, or undefined if none came in time. */
  async next(expiresMs: number): Promise<Delivery | undefined> {
    const { bus, names } = this.#deps;
    try {
      return await bus.next(names.activitiesStream, this.#consumer, {
        expiresMs,
        signal: this.#stopping.signal,
      });
    } catch (error) {
      // Resolves to undefined, so the caller calls `flow`, which makes the consumer again.
      this.#announce(error);
      return undefined;
    }
  }

  /** No task is delivered after this resolves. */
  async stop(): Promise<void> {
    const before = this.#state;
    this.#state = { kind: "stopped" };
    this.#stopping.abort();
    this.#following?.cancel();
    if (before.kind === "flowing") await (await before.consumption)?.stop();
  }

  /** Retried until it works or the feed is stopped: an unreachable server must not end a worker. */
  async #consume(flow: number): Promise<Consumption | undefined> {
    const { bus, names, config, runtime } = this.#deps;
    for (let tried = 1; !this.#stopping.signal.aborted; tried++) {
      try {
        const consumption = await bus.consume(names.activitiesStream, this.#consumer, {
          maxMessages: config.activities.slots,
          onMessage: this.#onMessage,
        });
        void consumption.ended.then((how) => (how === "gone" ? this.#regain(flow) : undefined));
        return consumption;
      } catch (error) {
        this.#announce(error);
        await sleep(
          runtime.clock,
          jittered(backoffMs(backoff, tried), runtime.random),
          this.#stopping.signal,
        );
        await this.#ensureConsumer().catch((failed: unknown) => this.#announce(failed));
      }
    }
    return undefined;
  }

  /**
   * The consumer was deleted, or the stream was made anew: make the consumer again; stored tasks are
   * delivered again.
   */
  async #regain(flow: number): Promise<void> {
    const isCurrent = () => this.#state.kind === "flowing" && flow === this.#flows;
    if (!isCurrent()) return;
    const message = `consumer ${this.#consumer} is gone, making it again`;
    this.#deps.runtime.announce({ kind: "fault", where: "worker.feed", code: "consumer_gone", message });
    await this.#ensureConsumer().catch((error: unknown) => this.#announce(error));
    if (isCurrent()) this.#state = { kind: "flowing", consumption: this.#consume(++this.#flows) };
  }

  async #ensureConsumer(): Promise<void> {
    const { bus, names } = this.#deps;
    const { queue, name } = this.activity;
    const ackWaitMs = this.#ackWaitMs();
    await bus.ensureConsumer({
      stream: names.activitiesStream,
      name: this.#consumer,
      filter: names.activity(queue, name),
      ackWaitMs,
      maxAckPending,
    });
    this.#ensuredMs = ackWaitMs;
  }

  #announce(error: unknown): void {
    announceFault(this.#deps.runtime, "worker.feed", error, { otherwise: "feed_failed" });
  }
}
