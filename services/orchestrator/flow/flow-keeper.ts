/**
 * The orchestration that keeps the keys of one shard. Every limited start reaches it as a signal; the
 * signals, in their order, and its decisions are in its history (FLOW-1 to FLOW-3 in flow-rules.ts).
 */
import {
  FlowCommand,
  FlowInput,
  FlowKeyState,
  type FlowRequest,
  type FlowWaiting,
  type FlowWord,
  flowOrchestration,
  flowSignal,
  flowWaitingQuery,
  leftOutOrchestration,
  type WaitingStart,
} from "../../../schemas/index.ts";
import { defineOrchestration, type OrchestrationContext } from "../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";
import { requestEnd, spawnFollowed } from "../../../shared/replay/index.ts";
import { advance, ended, type FlowAction, isIdle, mayWait, nextInstant, request } from "./flow-rules.ts";

/** A keeper's answer about one start. */
export interface KeptStart {
  readonly word: FlowWord["word"];
  /** True if the start counts against the limit of its key until its instance ends. */
  readonly followed: boolean;
}

/** Queries that the owner of a keeper sends to it. */
export const keeperQueries = { start: "start", mayWait: "may-wait" } as const;

/** The keeper continues as new after this many messages, to keep its history short. */
const messagesPerExecution = 300;
const rememberedRequests = 2000;
const statusEveryMs = 1_000;
/** Most keys in one answer. */
const mostWaitingKeys = 100;

export const flowKeeper = defineOrchestration(flowOrchestration, {
  input: FlowInput,
  // A cancelled instance could never be started again under its id.
  run: (ctx, input) => ctx.uncancellable((own) => new FlowKeeper(own, input).run()),
});

/** The instance of a start that was left out: it fails at once with the reason. */
export const leftOut = defineOrchestration(leftOutOrchestration, {
  run: async (_ctx, { code, message }: { code: string; message: string }) => {
    throw new HoldfastError({ code: `start_${code}`, message });
  },
});

type Started = Pick<WaitingStart, "instanceId" | "orchestration" | "input">;

interface Timer {
  readonly at: number;
  fired: Promise<void>;
}

class FlowKeeper {
  readonly #ctx: OrchestrationContext;
  readonly #state: FlowInput;
  readonly #known: Set<string>;
  readonly #leftOut: Map<string, string>;
  /** Instance id of a run → its key. */
  readonly #keyOf = new Map<string, string>();
  /** Key → the next time at which the keeper must act on the key although no message comes. */
  readonly #instants = new Map<string, number>();
  #timer: Timer | undefined;
  #lastStatus = "[]";
  #lastStatusAt = 0;

  constructor(ctx: OrchestrationContext, input: FlowInput) {
    this.#ctx = ctx;
    this.#state = structuredClone(input);
    this.#known = new Set(input.known);
    this.#leftOut = new Map(Object.entries(input.leftOutAs));
    for (const [key, { running }] of Object.entries(this.#state.keys))
      for (const instanceId of running) this.#keyOf.set(instanceId, key);
  }

  async run(): Promise<never> {
    this.#ctx.onQuery(keeperQueries.start, (instanceId) => this.#startOf(String(instanceId)));
    this.#ctx.onQuery(keeperQueries.mayWait, (command) => this.#mayWait(FlowCommand.parse(command)));
    this.#ctx.onQuery(flowWaitingQuery, () => this.#waiting());
    this.#advanceAll();
    for (let handled = 0; handled < messagesPerExecution; handled++) {
      this.#publishStatus();
      const signal = await this.#next();
      if (signal === undefined) {
        this.#advanceAll();
        continue;
      }
      const command = FlowCommand.safeParse(signal);
      if (command.success) this.#handle(command.data);
      else
        this.#ctx.log.warn(
          `ignored a signal that is no start and no end: ${command.error.issues[0]?.message}`,
        );
    }
    const known = [...this.#known].slice(-rememberedRequests);
    const leftOut = known.flatMap((id) => {
      const code = this.#leftOut.get(id);
      return code === undefined ? [] : [[id, code]];
    });
    return this.#ctx.continueAsNew({ ...this.#state, known, leftOutAs: Object.fromEntries(leftOut) });
  }

  #startOf(instanceId: string): KeptStart {
    const isIt = (start: { instanceId: string }) => start.instanceId === instanceId;
    const waits = Object.values(this.#state.keys).some(
      ({ waiting, debounced }) => waiting.some(isIt) || (debounced && isIt(debounced.start)),
    );
    const word = waits ? "waiting" : this.#leftOut.has(instanceId) ? "left-out" : "go";
    return { word, followed: this.#keyOf.has(instanceId) };
  }

  #mayWait(command: FlowCommand): boolean {
    const key = command.kind === "start" ? command.flow.key : this.#keyOf.get(command.instanceId);
    const state = key === undefined ? undefined : this.#state.keys[key];
    return mayWait(state, command.kind === "start" ? command.flow : undefined);
  }

  #waiting(): FlowWaiting {
    return Object.entries(this.#state.keys)
      .map(([key, { waiting }]) => ({ key, waiting: waiting.length }))
      .filter(({ waiting }) => waiting > 0)
      .sort((a, b) => b.waiting - a.waiting)
      .slice(0, mostWaitingKeys);
  }

  /**
   * Resolves with the next signal, or with undefined when a key is due. A timer is kept until it fires,
   * because each new timer is a write.
   */
  #next(): Promise<unknown> {
    const ctx = this.#ctx;
    const signal = ctx.waitForSignal(flowSignal);
    const at = Math.ceil(Math.min(...this.#instants.values()));
    if (at !== Number.POSITIVE_INFINITY && (this.#timer === undefined || at < this.#timer.at)) {
      const timer: Timer = { at, fired: Promise.resolve() };
      timer.fired = ctx.sleep(Math.max(0, at - ctx.now())).then(() => {
        if (this.#timer === timer) this.#timer = undefined;
      });
      this.#timer = timer;
    }
    return this.#timer ? Promise.race([signal, ctx.shield(this.#timer.fired)]) : signal;
  }

  #handle(command: FlowCommand): void {
    if (command.kind === "start") return this.#request(command);
    const { instanceId } = command;
    const key = this.#keyOf.get(instanceId) ?? this.#keyWaitedFor(instanceId);
    const state = key === undefined ? undefined : this.#state.keys[key];
    if (!state) return;
    this.#keyOf.delete(instanceId);
    ended(state, instanceId);
    this.#advance(key ?? "");
  }

  /** The key of a start that waits here and was ended before it could begin (FLOW-6). */
  #keyWaitedFor(instanceId: string): string | undefined {
    const waits = ({ waiting, debounced }: FlowKeyState) =>
      debounced?.start.instanceId === instanceId || waiting.some((one) => one.instanceId === instanceId);
    return Object.entries(this.#state.keys).find(([, state]) => waits(state))?.[0];
  }

  #request(command: FlowRequest): void {
    const { instanceId, orchestration, input, flow, seq } = command;
    if (this.#known.has(instanceId)) return command.again ? this.#sendAgain(command) : undefined;
    this.#known.add(instanceId);
    const accepted = ++this.#state.accepted;
    const number = seq ?? accepted;
    const { key, priority = 0, fairness = "" } = flow;
    const state = (this.#state.keys[key] ??= FlowKeyState.parse({}));
    const start = { instanceId, orchestration, input, priority, fairness, number };
    this.#carryOut(key, request(state, start, flow, this.#ctx.now()));
    this.#advance(key);
  }

  /**
   * Sends the start again if it was started or left out: of two starts of one id the instance takes the
   * first.
   */
  #sendAgain({ instanceId, orchestration, input }: FlowRequest): void {
    const { word } = this.#startOf(instanceId);
    if (word === "waiting") return;
    const code = this.#leftOut.get(instanceId);
    if (code !== undefined) return this.#leave(instanceId, code, `${orchestration} was not started`);
    this.#begin({ instanceId, orchestration, input }, this.#keyOf.has(instanceId));
  }

  #begin({ instanceId, orchestration, input }: Started, followed: boolean): void {
    if (followed)
      spawnFollowed(this.#ctx, { name: orchestration, input, id: instanceId, signal: flowSignal });
    else this.#ctx.spawn(orchestration, input, { id: instanceId });
  }

  #leave(instanceId: string, code: string, message: string): void {
    this.#ctx.spawn(leftOutOrchestration, { code, message }, { id: instanceId });
  }

  #advanceAll(): void {
    for (const key of Object.keys(this.#state.keys)) this.#advance(key);
  }

  #advance(key: string): void {
    const state = this.#state.keys[key];
    if (!state) return;
    this.#carryOut(key, advance(state, this.#ctx.now()));
    const next = nextInstant(state);
    if (next === undefined) this.#instants.delete(key);
    else this.#instants.set(key, next);
    if (isIdle(state, this.#ctx.now())) delete this.#state.keys[key];
  }

  #carryOut(key: string, actions: readonly FlowAction[]): void {
    for (const action of actions) {
      switch (action.kind) {
        case "start": {
          const { start, followed } = action;
          this.#state.started++;
          if (followed) this.#keyOf.set(start.instanceId, key);
          this.#begin(start, followed);
          break;
        }
        case "leave-out": {
          const { start, code, message } = action;
          this.#state.leftOut++;
          this.#leftOut.set(start.instanceId, code);
          this.#leave(start.instanceId, code, message);
          break;
        }
        case "cancel":
          requestEnd(this.#ctx, action.instanceId, "cancel", "a later start of its key takes its place");
          break;
      }
    }
  }

  /**
   * Shows people how many starts wait, rounded and once a second at most: an exact number would cost a write for each
   * start.
   */
  #publishStatus(): void {
    const keys = Object.entries(this.#state.keys).filter(([, { waiting }]) => waiting.length > 0);
    const waiting = keys
      .map(([key, state]) => ({ key, waiting: magnitude(state.waiting.length) }))
      .slice(0, 20);
    const text = JSON.stringify(waiting);
    const now = this.#ctx.now();
    if (text === this.#lastStatus || (waiting.length > 0 && now - this.#lastStatusAt < statusEveryMs)) return;
    this.#lastStatus = text;
    this.#lastStatusAt = now;
    this.#ctx.setStatus({ waiting });
  }
}

/** Rounds down to 1, 2, 5, 10, 20, 50, … */
function magnitude(n: number): number {
  const power = 10 ** Math.floor(Math.log10(n));
  const digit = n / power;
  return power * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}
