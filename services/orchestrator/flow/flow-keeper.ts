/**
 * The orchestration that keeps the keys of one shard. Every limited start is a message in its inbox, so the
 * order of starts is exact and durable, and its decisions are in its history (FLOW-1 to FLOW-3 in
 * flow-rules.ts).
 */
import {
  FlowCommand,
  FlowInput,
  FlowKeyState,
  type FlowRequest,
  flowOrchestration,
  flowSignal,
  leftOutOrchestration,
} from "../../../schemas/index.ts";
import { defineOrchestration, type OrchestrationContext } from "../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";
import { requestEnd, spawnFollowed } from "../../../shared/replay/index.ts";
import { advance, ended, type FlowAction, isIdle, nextInstant, request } from "./flow-rules.ts";

/** The keeper continues as new after this many messages, to keep its history short. */
const messagesPerExecution = 300;
const rememberedRequests = 2000;

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

interface Timer {
  readonly at: number;
  fired: Promise<void>;
}

class FlowKeeper {
  readonly #ctx: OrchestrationContext;
  readonly #state: FlowInput;
  readonly #known: Set<string>;
  /** Instance id of a run → its key. */
  readonly #keyOf = new Map<string, string>();
  /** Key → the next time at which the key has something to do without a message. */
  readonly #instants = new Map<string, number>();
  #timer: Timer | undefined;
  #said = "";

  constructor(ctx: OrchestrationContext, input: FlowInput) {
    this.#ctx = ctx;
    this.#state = structuredClone(input);
    this.#known = new Set(input.known);
    for (const [key, { running }] of Object.entries(this.#state.keys))
      for (const instanceId of running) this.#keyOf.set(instanceId, key);
  }

  async run(): Promise<never> {
    this.#advanceAll();
    for (let heard = 0; heard < messagesPerExecution; heard++) {
      this.#tell();
      const said = await this.#next();
      if (said === undefined) {
        this.#advanceAll();
        continue;
      }
      const command = FlowCommand.safeParse(said);
      if (command.success) this.#obey(command.data);
      else this.#ctx.log.warn(`what was said is no start: ${command.error.issues[0]?.message}`);
    }
    return this.#ctx.continueAsNew({ ...this.#state, known: [...this.#known].slice(-rememberedRequests) });
  }

  /**
   * Resolves with the next signal, or with undefined when a key is due. A timer is kept until it fires,
   * because each new timer is a write.
   */
  #next(): Promise<unknown> {
    const ctx = this.#ctx;
    const said = ctx.waitForSignal(flowSignal);
    const at = Math.ceil(Math.min(...this.#instants.values()));
    if (at !== Number.POSITIVE_INFINITY && (this.#timer === undefined || at < this.#timer.at)) {
      const timer: Timer = { at, fired: Promise.resolve() };
      timer.fired = ctx.sleep(Math.max(0, at - ctx.now())).then(() => {
        if (this.#timer === timer) this.#timer = undefined;
      });
      this.#timer = timer;
    }
    return this.#timer ? Promise.race([said, ctx.shield(this.#timer.fired)]) : said;
  }

  #obey(command: FlowCommand): void {
    if (command.kind === "start") return this.#request(command);
    const key = this.#keyOf.get(command.instanceId);
    const state = key === undefined ? undefined : this.#state.keys[key];
    if (!state) return;
    this.#keyOf.delete(command.instanceId);
    ended(state, command.instanceId);
    this.#advance(key ?? "");
  }

  #request({ instanceId, orchestration, input, flow }: FlowRequest): void {
    if (this.#known.has(instanceId)) return;
    this.#known.add(instanceId);
    const number = ++this.#state.accepted;
    const { key, priority = 0, fairness = "" } = flow;
    const state = (this.#state.keys[key] ??= FlowKeyState.parse({}));
    const start = { instanceId, orchestration, input, priority, fairness, number };
    this.#carryOut(key, request(state, start, flow, this.#ctx.now()));
    this.#advance(key);
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
          const { instanceId, orchestration, input } = action.start;
          this.#state.started++;
          if (action.followed) {
            this.#keyOf.set(instanceId, key);
            spawnFollowed(this.#ctx, { name: orchestration, input, id: instanceId, signal: flowSignal });
          } else this.#ctx.spawn(orchestration, input, { id: instanceId });
          break;
        }
        case "leave-out": {
          const { start, code, message } = action;
          this.#state.leftOut++;
          this.#ctx.spawn(leftOutOrchestration, { code, message }, { id: start.instanceId });
          break;
        }
        case "cancel":
          requestEnd(this.#ctx, action.instanceId, "cancel", "a later start of its key takes its place");
          break;
      }
    }
  }

  /** Shows people how many starts wait, rounded: an exact number would cost a write for each start. */
  #tell(): void {
    const keys = Object.entries(this.#state.keys).filter(([, { waiting }]) => waiting.length > 0);
    const waiting = keys
      .map(([key, state]) => ({ key, waiting: magnitude(state.waiting.length) }))
      .slice(0, 20);
    const text = JSON.stringify(waiting);
    if (text === this.#said) return;
    this.#said = text;
    this.#ctx.setStatus({ waiting });
  }
}

/** Rounds down to 1, 2, 5, 10, 20, 50, … */
function magnitude(n: number): number {
  const power = 10 ** Math.floor(Math.log10(n));
  const digit = n / power;
  return power * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}
