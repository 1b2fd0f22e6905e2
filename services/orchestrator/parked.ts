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
    const { bus, names, id } = this.#deps;
    for await (const { key } of this.#bucket.entries("parked.*")) {
      const instanceId = key.slice("parked.".length);
      const wake = encode({ v: 1, execution: 1, of: 0 });
      await bus.publish(names.verb(instanceId, "wake"), wake, { msgId: `look-${id}-${instanceId}` });
    }
  }
}
