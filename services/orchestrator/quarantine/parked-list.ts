/**
 * The list of instances whose code could not go on: an orchestrator that takes over partitions looks at them
 * first (T6).
 */
import { Bucket, encode } from "../../../shared/bus/index.ts";
import type { Fault } from "../../../shared/errors/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { publishEffect } from "../publishing/publish.ts";

type Deps = Pick<EngineDeps, "bus" | "names" | "runtime" | "capabilities">;

export class ParkedList {
  readonly #deps: Deps;
  readonly #bucket: Bucket;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#bucket = new Bucket(deps.bus, deps.names.bucket("settings"));
  }

  async set(instanceId: string, fault: Fault | undefined): Promise<void> {
    const key = `parked.${instanceId}`;
    await (fault
      ? this.#bucket.put(key, encode({ code: fault.code, message: fault.message }))
      : this.#bucket.delete(key));
  }

  async has(instanceId: string): Promise<boolean> {
    return (await this.#bucket.get(`parked.${instanceId}`)) !== undefined;
  }

  /** Asks the owner of each listed instance, whichever orchestrator that is, for another look. */
  async wakeAll(occasion: number, signal: AbortSignal): Promise<void> {
    for await (const { key } of this.#bucket.entries("parked.*")) {
      const { subject, wake, msgId } = this.#look(key.slice("parked.".length), String(occasion));
      await publishEffect({ ...this.#deps, signal }, subject, wake, { msgId });
    }
  }

  /** Returns false if the request may not be stored. */
  async askForLook(instanceId: string, occasion: string): Promise<boolean> {
    const { subject, wake, msgId } = this.#look(instanceId, occasion);
    return (await this.#deps.bus.publish(subject, encode(wake), { msgId })).kind === "stored";
  }

  /**
   * The owner that runs the next turn shows the instance as it is then. Requests for the same occasion count
   * as one.
   */
  #look(instanceId: string, occasion: string) {
    return {
      subject: this.#deps.names.verb(instanceId, "wake"),
      wake: { v: 1, execution: 1, of: 0 },
      msgId: `look-${instanceId}-${occasion}`,
    };
  }
}
