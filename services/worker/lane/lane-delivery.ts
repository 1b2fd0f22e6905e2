/** A task that came by the lane, settled like any other. The server knows nothing of it: its owner does. */
import type { ActivityTask } from "../../../schemas/index.ts";
import type { CoreMessage, Delivery, Headers } from "../../../shared/bus/index.ts";
import type { LanePath } from "./lane-path.ts";

export class LaneDelivery implements Delivery {
  readonly seq = 0;
  readonly order = 0;
  readonly deliveries = 1;
  readonly subject: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly at: number;
  readonly path: LanePath;
  readonly #task: ActivityTask;

  constructor(message: CoreMessage, path: LanePath, task: ActivityTask) {
    this.subject = message.subject;
    this.headers = message.headers;
    this.body = message.body;
    this.at = task.scheduledAt;
    this.path = path;
    this.#task = task;
  }

  ack(): void {
    // Its owner has the report, or does not wait for one.
  }

  async ackSync(): Promise<boolean> {
    return true;
  }

  nak(): void {
    this.path.giveBack(this.#task.instanceId, this.#task);
  }

  working(): void {
    // Its owner asks.
  }

  putAside(): void {
    // It has no place in a feed.
  }
}
