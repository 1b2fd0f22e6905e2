import type { Aborting } from "../lazy-abort.ts";
import type { Host } from "./host.ts";
import type { RunHooks, SessionHooks } from "./isolated/host-client.ts";
import { type Item, movable, type RunFacts, type SessionFacts } from "./isolated/protocol.ts";

export interface RunOptions {
  signal: Aborting;
  hooks: RunHooks;
}

/** One session's state in its host, for every kind of host. */
export class HostSession {
  readonly host: Host;
  #facts: SessionFacts;

  constructor(host: Host, facts: SessionFacts, hooks: SessionHooks) {
    this.host = host;
    this.#facts = facts;
    host.client.listen(facts.key, hooks);
  }

  async init(
    { config, restore }: { config: unknown; restore: Uint8Array | undefined },
    options: RunOptions,
  ): Promise<void> {
    const transfer = restore ? movable(restore) : [];
    await this.host.client.request(
      { kind: "init", session: this.#facts, config, restore },
      { ...options, transfer },
    );
  }

  async call(name: string, inputs: unknown[], run: RunFacts, options: RunOptions): Promise<Item[]> {
    const { key } = this.#facts;
    // The other end is the engine's own server, which answers a call with items.
    return (await this.host.client.request({ kind: "call", key, name, inputs, run }, options)) as Item[];
  }

  async activity(name: string, input: unknown, run: RunFacts, options: RunOptions): Promise<Item> {
    const { key } = this.#facts;
    return (await this.host.client.request({ kind: "activity", key, name, input, run }, options)) as Item;
  }

  event(name: string, payload: unknown): void {
    this.host.client.event(this.#facts.key, name, payload);
  }

  snapshot(): Promise<unknown> {
    return this.host.client.request({ kind: "snapshot", key: this.#facts.key });
  }

  async checkpoint(): Promise<Uint8Array> {
    return (await this.host.client.request({ kind: "checkpoint", key: this.#facts.key })) as Uint8Array;
  }

  /** S14: the same state under a new right. */
  async adopt(facts: SessionFacts, hooks: SessionHooks): Promise<void> {
    const { key } = this.#facts;
    await this.host.client.request({ kind: "adopt", key, session: facts });
    this.host.client.unlisten(key);
    this.#facts = facts;
    this.host.client.listen(facts.key, hooks);
  }

  async shutdown(hooks: RunHooks): Promise<void> {
    const { key } = this.#facts;
    await this.host.client.request({ kind: "shutdown", key }, { hooks }).finally(() => {
      this.host.client.unlisten(key);
    });
  }
}
