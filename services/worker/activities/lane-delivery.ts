/** A task that came by the lane, settled like any other. The server knows nothing of it: its owner does. */
import { type ActivityTask, type LaneReturn, laneOwnerHeader } from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  type Delivery,
  encode,
  type Headers,
  type Subjects,
} from "../../../shared/bus/index.ts";

export class LaneDelivery implements Delivery {
  readonly seq = 0;
  readonly order = 0;
  readonly deliveries = 1;
  readonly subject: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly at: number;
  readonly #deps: { bus: Bus; names: Subjects };
  readonly #task: ActivityTask;

  constructor(deps: { bus: Bus; names: Subjects }, message: CoreMessage, task: ActivityTask) {
    this.subject = message.subject;
    this.headers = message.headers;
    this.body = message.body;
    this.at = task.scheduledAt;
    this.#deps = deps;
    this.#task = task;
  }

  ack(): void {
    // Its owner has the report, or does not wait for one.
  }

  async ackSync(): Promise<boolean> {
    return true;
  }

  /** The owner sends it by the queue. If this gets lost, the owner finds out by asking (N4). */
  nak(): void {
    const owner = this.headers[laneOwnerHeader];
    if (owner === undefined) return;
    const { bus, names } = this.#deps;
    const { instanceId, execution, of, attempt } = this.#task;
    const returned: LaneReturn = { v: 1, execution, of, attempt };
    bus.send(names.laneOfOwner(owner, instanceId, "returned"), encode(returned));
  }

  working(): void {
    // Its owner asks.
  }
}
