/**
 * Requests to this one worker, on its control subject: `{"kind":"drain"}`. The worker answers at once and
 * acts after that.
 */
import { WorkerControl } from "../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../shared/bus/index.ts";
import { once, type Service } from "../../shared/runtime/index.ts";
import type { WorkerDeps } from "./deps.ts";

export class Control implements Service {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "identity">;
  readonly #onDrain: () => void;
  #subscription: Stoppable | undefined;

  constructor(deps: Pick<WorkerDeps, "bus" | "names" | "identity">, onDrain: () => void) {
    this.#deps = deps;
    this.#onDrain = onDrain;
  }

  async start(): Promise<void> {
    const { bus, names, identity } = this.#deps;
    const subject = names.workerControl(identity.workerId);
    this.#subscription = await bus.subscribe(subject, {}, (message) => this.#receive(message));
  }

  stop = once(async () => {
    await this.#subscription?.stop();
  });

  #receive(message: CoreMessage): void {
    const request = decode(WorkerControl, message.body);
    if (request.kind === "invalid") {
      const error = { code: "invalid_request", message: request.message };
      message.reply?.(encode({ ok: false, error }));
      return;
    }
    switch (request.value.kind) {
      case "drain":
        message.reply?.(encode({ ok: true, workerId: this.#deps.identity.workerId }));
        this.#onDrain();
    }
  }
}
