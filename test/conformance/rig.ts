/** What the conformance suite needs from a bus under test, and the few words it is written in. */
import type { Bus, Delivery, StreamSpec } from "../../shared/bus/bus.ts";
import { type Clock, sleep } from "../../shared/runtime/index.ts";

export interface BusRig {
  clock: Clock;
  connect(): Promise<Bus>;
  /** Kills the server without a word and brings it back on its data, so long after. */
  crash(downMs: number): Promise<void>;
  close(): Promise<void>;
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (body: Uint8Array): string => new TextDecoder().decode(body);

let counter = 0;
/** Names that no other test uses. */
export const fresh = (stem: string): string => `${stem}${++counter}`;

export const limits = (name: string, more: Partial<StreamSpec> = {}): StreamSpec => ({
  name,
  subjects: [`${name}.>`],
  retention: "limits",
  ...more,
});

export const workQueue = (name: string, more: Partial<StreamSpec> = {}): StreamSpec =>
  limits(name, { retention: "workqueue", dedupeWindowMs: 60_000, ...more });

export async function until(
  clock: Clock,
  fact: () => boolean | Promise<boolean>,
  withinMs = 20_000,
): Promise<void> {
  const deadline = clock.monotonic() + withinMs;
  while (!(await fact())) {
    if (clock.monotonic() > deadline) throw new Error(`not so within ${withinMs} ms: ${fact}`);
    await sleep(clock, 5);
  }
}

/** Collects deliveries, and acknowledges them if asked to. */
export class Inbox {
  readonly all: Delivery[] = [];
  readonly #ack: boolean;

  constructor(options: { ack: boolean }) {
    this.#ack = options.ack;
  }

  readonly onMessage = (message: Delivery): void => {
    this.all.push(message);
    if (this.#ack) message.ack();
  };

  get texts(): string[] {
    return this.all.map((message) => text(message.body));
  }
}
