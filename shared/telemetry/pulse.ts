/**
 * Sums up recent durations and publishes them every few seconds, so that the dashboard needs no metrics
 * server.
 */
import type { Pulse, PulseTimes } from "../../schemas/index.ts";
import { type Bus, encode, type Subjects } from "../bus/index.ts";
import type { Announce, Clock, Service, Timer } from "../runtime/index.ts";

type Kind = keyof Pulse["times"];
type Start = NonNullable<Pulse["starts"]>[number];

const everyMs = 2_000;
const perDoubling = 4;

/** The bucket around 2^(at/4) milliseconds; the finest is a sixteenth of a millisecond. */
export const pulseBucket = (ms: number): number => Math.round(Math.log2(Math.max(ms, 0.0625)) * perDoubling);

export class PulseSender implements Service {
  readonly #counts = new Map<Kind, Map<number, number>>();
  readonly #starts = new Map<string, Start>();
  readonly #sender: { service: string; id: string };
  #target: { bus: Bus; names: Subjects; clock: Clock } | undefined;
  #timer: Timer | undefined;

  constructor(service: string, id: string) {
    this.#sender = { service, id };
  }

  /** Takes in announced happenings; works before there is a bus. */
  readonly listen: Announce = (happening) => {
    switch (happening.kind) {
      case "activity.started":
        return this.#add("scheduleToStart", happening.waitedMs);
      case "turn.committed":
        return this.#add("step", happening.turnMs);
      case "call.ended":
        return this.#add("call", happening.ms);
      case "session.attached":
        return this.#addStart(
          happening.type,
          happening.warm ? "warm" : happening.restored ? "restored" : "cold",
        );
      default:
        return; // Only some kinds of happenings belong into a pulse.
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
    if (this.#counts.size === 0 && this.#starts.size === 0) return;
    const times: Pulse["times"] = {};
    for (const [kind, counts] of this.#counts) {
      times[kind] = [...counts].map(([at, n]): PulseTimes => ({ at, n }));
    }
    const starts = [...this.#starts.values()];
    this.#counts.clear();
    this.#starts.clear();
    const pulse: Pulse = { v: 1, ...this.#sender, times, ...(starts.length > 0 ? { starts } : {}) };
    bus.send(names.pulse, encode(pulse));
  }

  #add(kind: Kind, ms: number): void {
    const at = pulseBucket(ms);
    const counts = this.#counts.get(kind) ?? new Map<number, number>();
    counts.set(at, (counts.get(at) ?? 0) + 1);
    this.#counts.set(kind, counts);
  }

  #addStart(type: string, start: Start["start"]): void {
    const key = `${start} ${type}`;
    this.#starts.set(key, { type, start, n: (this.#starts.get(key)?.n ?? 0) + 1 });
  }
}
