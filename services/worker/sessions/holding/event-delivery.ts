import type { SessionWork } from "../../../../schemas/index.ts";
import { announceFault } from "../../../../shared/runtime/index.ts";
import type { HostSession } from "../../hosts/index.ts";
import type { SessionServices } from "../session-services.ts";

type Event = Extract<SessionWork, { kind: "event" }>;

/**
 * Delivers events to one session's state in order, even if an event has to be fetched from the blob store
 * first.
 */
export class EventDelivery {
  readonly #services: SessionServices;
  readonly #sessionId: string;
  #last: Promise<void> = Promise.resolve();

  constructor(services: SessionServices, sessionId: string) {
    this.#services = services;
    this.#sessionId = sessionId;
  }

  deliver(state: HostSession, event: Event): void {
    this.#last = this.#last.then(() => this.#deliver(state, event));
  }

  async #deliver(state: HostSession, { name, payload }: Event): Promise<void> {
    const { payloads, runtime } = this.#services.deps;
    try {
      state.event(name, "json" in payload ? payload.json : await payloads.unwrap(payload));
    } catch (error) {
      announceFault(runtime, `event ${name} of session ${this.#sessionId}`, error);
    }
  }
}
