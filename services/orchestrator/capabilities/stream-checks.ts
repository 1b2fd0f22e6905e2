/**
 * Tells readers of streams whether a chunk was written by a worker that was given the task (C1): readers
 * have no keys. Any orchestrator with keys answers. If none has keys, readers get no answer and accept all
 * chunks.
 */
import { StreamCheck, type StreamChecked } from "../../../schemas/index.ts";
import { type Bus, decode, encode, type Stoppable, type Subjects } from "../../../shared/bus/index.ts";
import type { Capabilities } from "../../../shared/capabilities/index.ts";
import type { Runtime, Service } from "../../../shared/runtime/index.ts";

interface StreamChecksDeps {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Pick<Runtime, "announce">;
  readonly capabilities: Capabilities;
}

export class StreamChecks implements Service {
  readonly #deps: StreamChecksDeps;
  #subscription: Stoppable | undefined;

  constructor(deps: StreamChecksDeps) {
    this.#deps = deps;
  }

  async start(): Promise<void> {
    const { bus, names, capabilities, runtime } = this.#deps;
    this.#subscription = await bus.subscribe(names.streamCheck, { queue: "orchestrators" }, (message) => {
      const asked = decode(StreamCheck, message.body);
      if (asked.kind === "invalid") return;
      const { instanceId, run, capability } = asked.value;
      // On sessions the number of a run is its epoch.
      const why = capabilities.doubtTask({ ...asked.value, epoch: run }, capability, "stream");
      if (why) runtime.announce({ kind: "capability.refused", what: "stream", why, instanceId });
      message.reply?.(encode({ v: 1, believed: why === undefined } satisfies StreamChecked));
    });
  }

  async stop(): Promise<void> {
    await this.#subscription?.stop();
  }
}
