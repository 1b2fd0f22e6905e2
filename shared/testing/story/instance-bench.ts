/**
 * Takes turns with one instance, without a bus: messages in, commits out. In `replay` mode the instance is
 * dropped and loaded from its commits before every turn (T8). The laws of every history are checked at every
 * commit, so that no spec has to.
 */
import {
  Commit,
  type EventKind,
  type EventOf,
  type HistoryEvent,
  type Payload,
} from "../../../schemas/index.ts";
import { type App, collectApp } from "../../definitions/index.ts";
import { Fault, HoldfastError } from "../../errors/index.ts";
import {
  type Accepted,
  type Effect,
  type InboxMessage,
  Instance,
  type InstanceHost,
  type InstanceState,
  installGuards,
} from "../../replay/index.ts";
import { checkHistory } from "../history/history-laws.ts";
import { anyWorker } from "./messages.ts";

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
  /** The newest wire generation that every live process can read. */
  generation?: number;
  /** For long histories: the laws are not checked after every commit. */
  unchecked?: boolean;
  historyLimit?: number;
  /** Called when the copy in memory was dropped and loaded again: both must be equal. */
  onReplay?: (replay: Replayed) => void;
}

export interface Replayed {
  before: Readonly<InstanceState>;
  after: Readonly<InstanceState>;
  effectsBefore: readonly Effect[];
  effectsAfter: readonly Effect[];
}

type Definitions = Record<string, unknown>;

/** Copies the effects at the time of the commit, whatever happens to the state later. */
const frozen = <T>(value: T): T => structuredClone(value);

export class Bench {
  readonly mode: Mode;
  readonly instanceId: string;
  readonly commits: Commit[] = [];
  /** The effects published after each commit, in order. */
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
    installGuards();
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

  /** The plain value that the instance returned. */
  get output(): unknown {
    const { output } = this.state;
    return output && "json" in output ? output.json : output;
  }

  /** The latest event of a kind in the whole history. */
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

  /** A new deployment: loads the instance with other code. */
  async deploy(definitions: Definitions): Promise<void> {
    this.#app = collectApp(definitions);
    await this.reload();
  }

  async reload(): Promise<void> {
    const instance = new Instance(this.instanceId, this.#host());
    await instance.load(this.#current());
    this.instance = instance;
    // Commits may have come from elsewhere: the bench's next messages must have new sequences.
    this.#seq = Math.max(this.#seq, ...this.commits.flatMap(({ inbox }) => inbox));
  }

  /** Commits of the latest execution. */
  #current(): Commit[] {
    const execution = this.commits.at(-1)?.execution ?? 0;
    return this.commits.filter((commit) => Math.max(1, commit.execution) === Math.max(1, execution));
  }

  /**
   * Like the orchestrator: an instance that a query spoiled, or that has ended, is built again from its
   * history.
   */
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

  /** Takes all messages in one turn, and the turns of the executions that follow from it. */
  async turn(...messages: InboxMessage[]): Promise<BenchTurn> {
    this.now += 10;
    if (this.mode === "replay") await this.#replayed();
    let facts: HistoryEvent[] = [];
    let effects: Effect[] = [];
    const result: BenchTurn = { events: [], effects: [], accepted: [], verdicts: [] };
    for (const sent of messages) {
      const message = this.#fromHolder(sent);
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
      const verdict = this.instance.accept(message, this.now, facts, effects);
      if (verdict.kind === "facts") this.instance.applied(seq);
      result.accepted.push(verdict);
      result.verdicts.push(verdict.kind === "facts" ? "facts" : verdict.why);
    }
    await this.#finishAll(facts, effects, result);
    return result;
  }

  /** If a spec names no sender, the result of a session's call comes from its holder. */
  #fromHolder(message: InboxMessage): InboxMessage {
    if (message.kind !== "activity" || message.report.workerId !== anyWorker) return message;
    const { report } = message;
    const target = this.state.tasks.get(report.of)?.target;
    const phase = target?.kind === "session" ? this.state.sessions.get(target.sessionId)?.phase : undefined;
    const on = phase && "on" in phase ? phase.on : undefined;
    if (on?.epoch !== report.epoch || on === undefined) return message;
    return { ...message, report: { ...report, workerId: on.workerId } };
  }

  async #finishAll(facts: HistoryEvent[], effects: Effect[], result: BenchTurn): Promise<void> {
    // Like the orchestrator: messages without effect take no turn.
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
        inbox: this.instance.popInbox(),
        ...(turn.deferred ? { deferred: true as const } : {}),
        events: turn.events,
      };
      // As on the wire: changes by JSON or by the schema must not change the instance.
      this.commits.push(Commit.parse(JSON.parse(JSON.stringify(commit))));
      this.#lastEffects = published;
      if (!this.#options.unchecked) checkHistory(this.commits);
    }
    this.published.push({ execution: this.state.execution, effects: published });
    result.effects.push(...published);
    result.events.push(...turn.events);
  }

  /** Dropping the copy in memory changes neither the state nor the effects of the last commit (T3, T8). */
  async #replayed(): Promise<void> {
    if (this.commits.length === 0) return;
    const before = this.instance;
    await this.reload();
    if (before.parked) return;
    if (this.fault)
      throw new Error(`replay disagreed with its own history: ${this.fault.message}`, { cause: this.fault });
    this.#options.onReplay?.({
      before: before.state,
      after: this.state,
      effectsBefore: this.#lastEffects,
      effectsAfter: frozen(this.instance.lastEffects),
    });
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
        // A sink may use what orchestration code may not, and sees the real time.
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
