/** Sums up how long things took and says so every few seconds, so that the dashboard needs no metrics server. */
import type { Pulse, PulseTimes } from "../../schemas/index.ts";
import { type Bus, encode, type Subjects } from "../../shared/bus/index.ts";
import type { Announce, Clock, Service, Timer } from "../../shared/runtime/index.ts";

type Kind = keyof Pulse["times"];

const everyMs = 2_000;
const perDoubling = 4;

/** The bucket around 2^(at/4) milliseconds; a sixteenth of a millisecond is the finest. */
export const pulseBucket = (ms: number): number => Math.round(Math.log2(Math.max(ms, 0.0625)) * perDoubling);

export class PulseSender implements Service {
  readonly #counts = new Map<Kind, Map<number, number>>();
  readonly #who: { service: string; id: string };
  #target: { bus: Bus; names: Subjects; clock: Clock } | undefined;
  #timer: Timer | undefined;

  constructor(service: string, id: string) {
    this.#who = { service, id };
  }

  /** The ear; works before there is a bus. */
  readonly listen: Announce = (happening) => {
    switch (happening.kind) {
      case "activity.started":
        return this.#add("scheduleToStart", happening.waitedMs);
      case "turn.committed":
        return this.#add("step", happening.turnMs);
      case "call.ended":
        return this.#add("call", happening.ms);
      default:
        return; // only what has a place in a pulse
    }
  };

  attach(bus: Bus, names: Subjects, clock: Clock): void {
    this.#target = { bus, names, clock };
  }

  async start(): Promise<void> {
    const target = this.#target;
    if (!target) return;
    this.#timer = target.clock.after(everyMs, () => {
      this.#send(target.bus, target.names);
      void this.start();
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#target = undefined;
  }

  #send(bus: Bus, names: Subjects): void {
    if (this.#counts.size === 0) return;
    const times: Pulse["times"] = {};
    for (const [kind, counts] of this.#counts) {
      times[kind] = [...counts].map(([at, n]): PulseTimes => ({ at, n }));
    }
    this.#counts.clear();
    bus.send(names.pulse, encode({ v: 1, ...this.#who, times } satisfies Pulse));
  }

  #add(kind: Kind, ms: number): void {
    const at = pulseBucket(ms);
    const counts = this.#counts.get(kind) ?? new Map<number, number>();
    counts.set(at, (counts.get(at) ?? 0) + 1);
    this.#counts.set(kind, counts);
  }
}
