/**
 * A task that came by the lane, with the interface of a queue's delivery. The NATS server does not know the
 * task; the instance's owner does.
 */
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
    // The owner has the report, or does not wait for one.
  }

  async ackSync(): Promise<boolean> {
    return true;
  }

  nak(): void {
    this.path.giveBack(this.#task.instanceId, this.#task);
  }

  working(): void {
    // The owner asks by itself whether the task is still held.
  }

  putAside(): void {
    // A lane task is in no feed.
  }
}
