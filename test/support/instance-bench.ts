/**
 * Takes turns with one instance, without a bus: messages in, commits out. In `replay` mode the instance is thrown away
 * and loaded from its commits before every turn (T8); `scenario` runs each spec in both modes and compares what was
 * written. What every history must hold is checked at every commit, so that no spec has to say it.
 */
import { expect, test } from "vitest";
import {
  Commit,
  type EventKind,
  type EventOf,
  type HistoryEvent,
  type Payload,
} from "../../schemas/index.ts";
import { type App, collectApp } from "../../shared/definitions/index.ts";
import { Fault, HoldfastError } from "../../shared/errors/index.ts";
import {
  type Accepted,
  type Effect,
  type InboxMessage,
  Instance,
  type InstanceHost,
  type InstanceState,
  installGuards,
} from "../../shared/replay/index.ts";
import { checkHistory } from "../../shared/testing/history/history-laws.ts";

installGuards();

export type Mode = "live" | "replay";

export interface BenchTurn {
  events: HistoryEvent[];
  effects: Effect[];
  accepted: Accepted[];
  /** One word per message: `facts`, or why it was ignored. */
  verdicts: string[];
}

export interface BenchOptions {
  instanceId?: string;
  inlineBytes?: number;
  whyUnclaimed?: string;
  /** The newest generation that everybody alive can read. */
  generation?: number;
  /** Long histories: the laws are not looked at after every commit. */
  unchecked?: boolean;
  historyLimit?: number;
}

type Definitions = Record<string, unknown>;

/** In a closed instance of a spec: the effects at the time of the commit, whatever the state does later. */
const frozen = <T>(value: T): T => structuredClone(value);

export class Bench {
  readonly mode: Mode;
  readonly instanceId: string;
  readonly commits: Commit[] = [];
  /** What left the process after each commit, in order. */
  readonly published: { execution: number; effects: Effect[] }[] = [];
  readonly logs: { level: string; message: string; at: number }[] = [];
  readonly blobs = new Map<string, unknown>();
  instance: Instance;
  now = 1_000_000;
  #app: App;
  #seq = 0;
  #options: BenchOptions;
  #lastEffects: Effect[] = [];

  constructor(definitions: Definitions, mode: Mode = "live", options: BenchOptions = {}) {
    this.mode = mode;
    this.instanceId = options.instanceId ?? "i1";
    this.#options = options;
    this.#app = collectApp(definitions);
    this.instance = new Instance(this.instanceId, this.#host());
  }

  get state(): Readonly<InstanceState> {
    return this.instance.state;
  }

  get fault(): Fault | undefined {
    return this.instance.parked;
  }

  get events(): HistoryEvent[] {
    return this.commits.flatMap((commit) => commit.events);
  }

  get effects(): Effect[] {
    return this.published.flatMap(({ effects }) => effects);
  }

  get kinds(): EventKind[] {
    return this.events.map((event) => event.kind);
  }

  /** The plain value an instance returned. */
  get output(): unknown {
    const { output } = this.state;
    return output && "json" in output ? output.json : output;
  }

  /** The latest event of a kind, in the whole history. */
  last<K extends EventKind>(kind: K): EventOf<K> {
    const event = this.events.findLast((candidate) => candidate.kind === kind);
    if (!event) throw new Error(`no ${kind} in ${this.kinds.join(", ")}`);
    return event as EventOf<K>;
  }

  /** Event ids of open tasks of that name, oldest first. */
  open(name: string): number[] {
    return [...this.state.tasks.values()].filter((task) => task.name === name).map((task) => task.id);
  }

  /** The id of the only open task of that name. */
  task(name: string): number {
    const [id, ...others] = this.open(name);
    if (id === undefined || others.length > 0)
      throw new Error(`${1 + others.length} open tasks named ${name}: ${[...this.state.tasks.keys()]}`);
    return id;
  }

  phase(sessionId: string): string | undefined {
    return this.state.sessions.get(sessionId)?.phase.kind;
  }

  advance(ms: number): void {
    this.now += ms;
  }

  /** A new deployment: the instance is loaded with other code. */
  async deploy(definitions: Definitions): Promise<void> {
    this.#app = collectApp(definitions);
    await this.reload();
  }

  async reload(): Promise<void> {
    const instance = new Instance(this.instanceId, this.#host());
    await instance.load(this.#current());
    this.instance = instance;
  }

  /** Of the latest execution. */
  #current(): Commit[] {
    const execution = this.commits.at(-1)?.execution ?? 0;
    return this.commits.filter((commit) => Math.max(1, commit.execution) === Math.max(1, execution));
  }

  /** As the orchestrator does: what was spoiled is built again from history, and so is what is over. */
  async query(name: string, input?: unknown): Promise<unknown> {
    if (this.mode === "replay") await this.#replayed();
    let { instance } = this;
    if (this.commits.length > 0 && !instance.hasCode && !instance.parked) {
      instance = new Instance(this.instanceId, this.#host());
      await instance.load(this.#current(), { check: true });
    }
    const asked = instance.query(name, input);
    if (asked.kind === "answered") return JSON.parse(asked.json);
    if (asked.spoiled) await this.reload();
    throw new HoldfastError(asked);
  }

  /** All messages as one turn, and the turns of executions that follow from it. */
  async turn(...messages: InboxMessage[]): Promise<BenchTurn> {
    this.now += 10;
    if (this.mode === "replay") await this.#replayed();
    let facts: HistoryEvent[] = [];
    let effects: Effect[] = [];
    const result: BenchTurn = { events: [], effects: [], accepted: [], verdicts: [] };
    for (const message of messages) {
      const seq = ++this.#seq;
      if (message.kind === "update") {
        if (this.instance.mustSeeFirst(message) && facts.length > 0) {
          await this.#finishAll(facts, effects, result);
          [facts, effects] = [[], []];
        }
        const considered = await this.instance.consider(message);
        if (considered.kind !== "acceptable") {
          result.verdicts.push(considered.kind === "known" ? considered.record.kind : considered.code);
          if (considered.kind === "refused" && considered.spoiled) await this.reload();
          continue;
        }
      }
      if (this.instance.isAhead) await this.reload();
      const verdict = this.instance.take(message, this.now, facts, effects);
      if (verdict.kind === "facts") this.instance.applied(seq);
      result.accepted.push(verdict);
      result.verdicts.push(verdict.kind === "facts" ? "facts" : verdict.why);
    }
    await this.#finishAll(facts, effects, result);
    return result;
  }

  async #finishAll(facts: HistoryEvent[], effects: Effect[], result: BenchTurn): Promise<void> {
    // As the orchestrator does: what means nothing takes no turn.
    if (facts.length > 0 || this.instance.hasUnseen) await this.#finish(facts, effects, result);
    while (this.state.next) {
      if (this.mode === "replay") await this.#replayed();
      const next = { facts: [] as HistoryEvent[], effects: [] as Effect[] };
      this.instance.continueAsNew(this.now, next.facts, next.effects);
      await this.#finish(next.facts, next.effects, result);
    }
  }

  async #finish(facts: HistoryEvent[], effects: Effect[], result: BenchTurn): Promise<void> {
    const turn = await this.instance.finish(facts, effects, this.now);
    const published = frozen(turn.effects);
    if (turn.events.length > 0) {
      const commit: Commit = {
        v: 1,
        commitId: `c${this.commits.length + 1}`,
        instanceId: this.instanceId as Commit["instanceId"],
        execution: this.state.execution,
        at: this.now,
        inbox: this.instance.takeInbox(),
        ...(turn.deferred ? { deferred: true as const } : {}),
        events: turn.events,
      };
      // As it is on the wire: what JSON or the schema changes must not change the instance.
      this.commits.push(Commit.parse(JSON.parse(JSON.stringify(commit))));
      this.#lastEffects = published;
      if (!this.#options.unchecked) checkHistory(this.commits);
    }
    this.published.push({ execution: this.state.execution, effects: published });
    result.effects.push(...published);
    result.events.push(...turn.events);
  }

  /** Dropping the copy in memory changes nothing: neither its state, nor what its last commit asked for (T3, T8). */
  async #replayed(): Promise<void> {
    if (this.commits.length === 0) return;
    const before = this.instance;
    await this.reload();
    if (before.parked) return;
    expect(this.fault, "replay disagreed with its own history").toBeUndefined();
    // What was ignored was not written down either.
    expect(this.state).toEqual(before.state);
    expect(frozen(this.instance.lastEffects)).toEqual(this.#lastEffects);
  }

  #host(): InstanceHost {
    const { inlineBytes = 1e9, whyUnclaimed = "no worker with tag gpu", generation = 2 } = this.#options;
    return {
      generation: { allows: (asked) => asked <= generation },
      app: this.#app,
      payloads: {
        inlineBytes,
        store: async (json, owner) => this.#store(json, owner),
        fetch: async (payload) => ("blob" in payload ? this.#fetch(payload.blob.key) : payload.json),
      },
      historyLimit: this.#options.historyLimit,
      placement: { whyUnclaimed: () => whyUnclaimed },
      log: (_instanceId, level, message) => {
        // A sink may do what code may not, and sees the real time.
        clearTimeout(setTimeout(() => undefined, 0));
        this.logs.push({ level, message, at: Date.now() });
      },
    };
  }

  #fetch(key: string): unknown {
    if (!this.blobs.has(key))
      throw new Fault("contract", { code: "blob_missing", message: `no blob ${key}` });
    return this.blobs.get(key);
  }

  #store(json: string, owner: string): Payload {
    const key = `${owner}/${this.blobs.size + 1}`;
    this.blobs.set(key, JSON.parse(json));
    return { blob: { key, bytes: json.length, sha256: "0".repeat(64) } };
  }
}

/** Runs a spec live and in always-replay mode. Both must write the same history and ask for the same effects. */
export function scenario(
  title: string,
  definitions: Definitions,
  body: (bench: Bench) => Promise<void>,
  options: BenchOptions = {},
): void {
  test(title, async () => {
    const [live, replay] = [
      new Bench(definitions, "live", options),
      new Bench(definitions, "replay", options),
    ];
    await body(live);
    await body(replay);
    expect(replay.commits, "always replaying wrote another history").toEqual(live.commits);
    expect(replay.effects, "always replaying asked for other effects").toEqual(live.effects);
    if (live.fault) return;
    const before = live.instance;
    await live.reload();
    expect(live.state, "loading gave another state").toEqual(before.state);
  });
}
