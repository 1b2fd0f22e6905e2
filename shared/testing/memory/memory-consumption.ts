/**
 * One client's consumption of a consumer: never more unsettled deliveries than requested, and
 * acknowledgements that travel through the client's connection.
 */
import type { ConsumeOptions, Consumption, Delivery } from "../../bus/index.ts";
import type { ClientState } from "./client-state.ts";
import type { MemoryConsumer, MessageTaker } from "./memory-consumer.ts";

export class MemoryConsumption implements MessageTaker, Consumption {
  readonly ended: Promise<"stopped" | "gone">;
  readonly #client: ClientState;
  readonly #consumer: MemoryConsumer;
  readonly #options: ConsumeOptions;
  readonly #unsettled = new Map<number, Delivery>();
  /** Deliveries that have not reached the client yet. */
  readonly #onTheWay = new Set<Delivery>();
  readonly #unlisten: () => void;
  #over = false;
  #end: (how: "stopped" | "gone") => void = () => undefined;

  constructor(client: ClientState, consumer: MemoryConsumer, options: ConsumeOptions) {
    this.#client = client;
    this.#consumer = consumer;
    this.#options = options;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#unlisten = client.onState((state) => {
      if (state.kind === "disconnected") this.#forgetLost();
      if (state.kind === "reconnected") consumer.pump();
    });
    consumer.join(this);
  }

  room(): number {
    return this.#over || !this.#client.up ? 0 : this.#options.maxMessages - this.#unsettled.size;
  }

  receive(delivery: Delivery): void {
    const wrapped = this.#wrap(delivery);
    this.#unsettled.set(delivery.seq, wrapped);
    this.#onTheWay.add(wrapped);
    this.#client.guarded("consumption", () => {
      this.#onTheWay.delete(wrapped);
      this.#options.onMessage(wrapped);
    });
  }

  idle(deliveries: number): void {
    const { onIdle } = this.#options;
    if (onIdle && this.room() > 0) this.#client.guarded("consumption", () => onIdle(deliveries));
  }

  release(seq: number): void {
    this.#unsettled.delete(seq);
  }

  gone(): void {
    this.#finish("gone");
  }

  /** The client is dead: ends without telling the server. */
  abandon(): void {
    this.#over = true;
    this.#consumer.leave(this);
  }

  async stop(): Promise<void> {
    this.#consumer.leave(this);
    this.#finish("stopped");
  }

  /** A new connection asks anew: messages lost with the old one take no room. */
  #forgetLost(): void {
    for (const [seq, delivery] of this.#unsettled)
      if (this.#onTheWay.has(delivery)) this.#unsettled.delete(seq);
    this.#onTheWay.clear();
  }

  #finish(how: "stopped" | "gone"): void {
    this.#over = true;
    this.#unlisten();
    this.#end(how);
  }

  #wrap(delivery: Delivery): Delivery {
    let settled = false;
    const makeRoom = (): void => {
      if (this.#unsettled.get(delivery.seq) === wrapped) this.#unsettled.delete(delivery.seq);
    };
    const settle = (): boolean => {
      if (settled || this.#client.killed) return false;
      settled = true;
      makeRoom();
      return true;
    };
    const send = (act: () => void) => {
      this.#client.sendSoon(act);
      this.#consumer.pump(); // There is room again.
    };
    const wrapped: Delivery = {
      ...delivery,
      ack: () => {
        if (settle()) send(() => delivery.ack());
      },
      ackSync: async () => {
        if (!settle()) return false;
        await this.#client.ask(() => delivery.ack());
        this.#consumer.pump();
        return true;
      },
      nak: (delayMs) => {
        if (settle()) send(() => delivery.nak(delayMs));
      },
      working: () => {
        if (!settled && this.#client.up) this.#client.sendSoon(() => delivery.working());
      },
      putAside: () => {
        makeRoom();
        this.#consumer.pump();
      },
    };
    return wrapped;
  }
}
