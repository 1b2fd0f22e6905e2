/** A short list of instances whose code could not go on: a new deployment looks at them first (T6). */
import { Bucket, encode } from "../../shared/bus/index.ts";
import type { Fault } from "../../shared/errors/index.ts";
import type { OrchestratorDeps } from "./deps.ts";

type Deps = Pick<OrchestratorDeps, "bus" | "names" | "id" | "runtime">;

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

  /** Asks for another look at each, whoever owns it now. */
  async wakeAll(): Promise<void> {
    for await (const { key } of this.#bucket.entries("parked.*")) {
      await this.askForLook(key.slice("parked.".length), "start");
    }
  }

  /** Whoever takes its next turn shows it as it is then. Once for each occasion; false where it may not be stored. */
  async askForLook(instanceId: string, occasion: string): Promise<boolean> {
    const { bus, names, id } = this.#deps;
    const wake = encode({ v: 1, execution: 1, of: 0 });
    const msgId = `look-${id}-${instanceId}-${occasion}`;
    return (await bus.publish(names.verb(instanceId, "wake"), wake, { msgId })).kind === "stored";
  }
}
