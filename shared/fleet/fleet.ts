/**
 * All live processes and the generation each can read, from the buckets in which services and workers keep
 * their entries. An entry that does not parse counts all the same: only its key and headers are read.
 *
 * E1 A new generation is written only when every live service can read it. The step back is taken at once.
 *    The step up waits if the last process that held it back was not seen to leave: a process that was paused
 *    comes back and reads on. A fleet in which no process holds it back writes the newest generation from the
 *    beginning.
 */
import { z } from "zod";
import { firstGeneration, newestGeneration, versionHeader, wireObject } from "../../schemas/index.ts";
import {
  Bucket,
  type BucketEvent,
  type Bus,
  decode,
  type Entry,
  type Stoppable,
  type Subjects,
} from "../bus/index.ts";
import { once, type Runtime, type Service } from "../runtime/index.ts";
import { type FleetMember, type Generation, generationOf } from "./generation.ts";

interface FleetDeps {
  bus: Bus;
  names: Subjects;
  runtime: Pick<Runtime, "clock" | "announce">;
  /**
   * The generation limit set by this process's operator, who keeps a downgrade possible; it counts before the
   * process's own entry is written.
   */
  atMost?: number;
  /**
   * The generation that is written even if an entry names an older one. Workers write entries too: without this floor a
   * malicious worker could make the fleet give up a new generation, and with it capabilities.
   */
  atLeast?: number;
}

/** How long a process whose entry has expired is still counted. */
const patienceMs = 60_000;

const kinds = ["orchestrator", "watcher", "gateway"] as const;

export class Fleet implements Service, Generation {
  readonly #deps: FleetDeps;
  readonly #members = new Map<string, FleetMember>();
  /** Processes whose entry has expired, and until when they count. */
  readonly #silent = new Map<string, { member: FleetMember; until: number }>();
  readonly #watches: Stoppable[] = [];
  #announced: number | undefined;
  /** The last result and until when it holds if no process comes or goes. */
  #counted: { written: number; until: number } | undefined;

  constructor(deps: FleetDeps) {
    this.#deps = deps;
  }

  /** Read for every message that is written, so the result is computed only after a change. */
  get written(): number {
    const now = this.#deps.runtime.clock.monotonic();
    if (!this.#counted || this.#counted.until <= now) {
      const generations = this.members().map(({ generation }) => generation);
      const { atMost = newestGeneration, atLeast = firstGeneration } = this.#deps;
      const written = Math.max(atLeast, Math.min(newestGeneration, atMost, ...generations));
      const until = Math.min(...[...this.#silent.values()].map((silent) => silent.until));
      this.#counted = { written, until };
    }
    return this.#counted.written;
  }

  allows(generation: number): boolean {
    return generation <= this.written;
  }

  isLater(kind: FleetMember["kind"]): boolean {
    return this.members().some((one) => one.kind === kind && one.generation > newestGeneration);
  }

  heldBackBy(): readonly FleetMember[] {
    return this.members().filter(({ generation }) => generation < newestGeneration);
  }

  members(): readonly FleetMember[] {
    const now = this.#deps.runtime.clock.monotonic();
    for (const [key, { until }] of this.#silent) if (until <= now) this.#silent.delete(key);
    return [...this.#members.values(), ...[...this.#silent.values()].map(({ member }) => member)];
  }

  /** Resolves when all processes registered so far are known. */
  async start(): Promise<void> {
    await this.#follow("services", serviceOf);
    await this.#follow("workers", (entry) => member("worker", entry.key, entry));
    this.#announceChange();
  }

  stop = once(async () => {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  });

  async #follow(name: "services" | "workers", memberOf: MemberOf): Promise<void> {
    const bucket = new Bucket(this.#deps.bus, this.#deps.names.bucket(name));
    let known: () => void = () => undefined;
    const caughtUp = new Promise<void>((resolve) => {
      known = resolve;
    });
    const watch = await bucket.watch(">", {
      onEntry: (event) => this.#apply(`${name}.${event.key}`, event, memberOf),
      onCaughtUp: known,
    });
    this.#watches.push(watch);
    await caughtUp;
  }

  #apply(key: string, event: BucketEvent, memberOf: MemberOf): void {
    const { clock } = this.#deps.runtime;
    const before = this.#members.get(key);
    this.#silent.delete(key);
    this.#counted = undefined;
    if (event.kind === "put") {
      const now = memberOf(event);
      this.#members.set(key, now);
      if (now.generation === before?.generation) return;
    } else {
      this.#members.delete(key);
      if (before && event.kind === "expired" && before.generation < newestGeneration) {
        this.#silent.set(key, { member: before, until: clock.monotonic() + patienceMs });
      }
    }
    if (this.#announced !== undefined) this.#announceChange();
  }

  #announceChange(): void {
    const { written } = this;
    if (written === this.#announced) return;
    this.#announced = written;
    this.#deps.runtime.announce({
      kind: "generation.written",
      generation: written,
      newest: newestGeneration,
      heldBackBy: this.heldBackBy().map(({ kind, id }) => `${kind} ${id}`),
    });
  }
}

type MemberOf = (entry: Entry) => FleetMember;

const member = (kind: FleetMember["kind"], id: string, { headers, value }: Entry): FleetMember => ({
  kind,
  id,
  version: headers[versionHeader] ?? versionIn(value),
  generation: generationOf(headers),
});

/** Services of version 0.1.0 write their version only in the entry's body. */
function versionIn(value: Uint8Array): string | undefined {
  const decoded = decode(Versioned, value);
  return decoded.kind === "ok" ? decoded.value.version : undefined;
}

const Versioned = wireObject({ version: z.string() });

/** The key is `<service>.<id>`. */
function serviceOf(entry: Entry): FleetMember {
  const [service = "", ...rest] = entry.key.split(".");
  return member(kinds.find((kind) => kind === service) ?? "other", rest.join(".") || service, entry);
}
