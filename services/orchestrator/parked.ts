/** A short list of instances whose code could not go on: whoever takes over partitions looks at them first (T6). */
import { Bucket, encode } from "../../shared/bus/index.ts";
import type { Fault } from "../../shared/errors/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import { publishSurely } from "./publish.ts";

type Deps = Pick<OrchestratorDeps, "bus" | "names" | "runtime">;

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

  /** Asks for another look at each, whoever owns it now; `occasion`: asked again for the same one, it is one question. */
  async wakeAll(occasion: number, signal: AbortSignal): Promise<void> {
    const { names } = this.#deps;
    for await (const { key } of this.#bucket.entries("parked.*")) {
      const instanceId = key.slice("parked.".length);
      const wake = { v: 1, execution: 1, of: 0 };
      const msgId = `look-${occasion}-${instanceId}`;
      await publishSurely({ ...this.#deps, signal }, names.verb(instanceId, "wake"), wake, { msgId });
    }
  }
}
