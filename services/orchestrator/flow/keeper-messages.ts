/**
 * Plain messages between the owner of a keeper of flow control and other orchestrators. Correctness does
 * not depend on them: a start lies in the inbox until it was handed over (FLOW-4), and an end that no
 * keeper confirms is sent by the inbox.
 *
 * FLOW-5 A keeper hands a start over to the orchestrator that confirms that it holds it; if none does, the
 *    start is sent by the inbox.
 */
import {
  FlowAsk,
  type FlowCommand,
  FlowReply,
  FlowRequest,
  type FlowWord,
  flowOrchestration,
  flowSignal,
  InstanceId,
  type Payload,
} from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  encode,
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import { type Clock, once, type Runtime, type Service, type Timer } from "../../../shared/runtime/index.ts";
import type { Mail } from "../mail.ts";
import { shortMessageId } from "../parse-inbox.ts";
import type { Question } from "../queries/queries.ts";
import { type KeptStart, keeperQueries } from "./flow-keeper.ts";
import { requestIdOf } from "./held-starts.ts";

/** What the publisher of effects needs from the keepers of flow control. */
export interface Keepers {
  /** Returns true if an orchestrator holds the start and begins it now. */
  handOver(keeper: string, instanceId: string, followed: boolean): Promise<boolean>;
  /** Called when the start was left out, and its instance was started to fail with the reason. */
  leftOut(keeper: string, instanceId: string): void;
  /** Returns true if the keeper has recorded the end, false if that is not known in time or the signal is aborted. */
  ended(
    keeper: string,
    end: { instanceId: string; status: string; messageId: string },
    signal: AbortSignal,
  ): Promise<boolean>;
}

interface KeeperPartition {
  put(instanceId: string, mail: Mail): void;
  ask(instanceId: string, question: Question): void;
}

interface KeeperMessagesParts {
  readonly id: string;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  /** Returns undefined if this orchestrator does not hold the partition of the keeper. */
  partitionOf(keeper: string): KeeperPartition | undefined;
  /** Passes a decision to a start that this process holds; returns false if it does not hold it. */
  onDecision(word: FlowWord): boolean;
}

interface Later {
  readonly mails: Mail[];
  readonly timer: Timer;
}

const decisionMs = 1_000;
const recordMs = 3_000;
/**
 * Messages on which a keeper does not act wait this long, and at most so many of them, to share one commit.
 */
const batchMs = 100;
const batchMost = 32;

export class KeeperMessages implements Service, Keepers {
  readonly #parts: KeeperMessagesParts;
  /** Keeper → instance id → the orchestrator that holds its start. */
  readonly #holders = new Map<string, Map<string, string>>();
  readonly #later = new Map<string, Later>();
  /** Keepers that exist. */
  readonly #begun = new Set<string>();
  #subscription: Stoppable | undefined;

  constructor(parts: KeeperMessagesParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { bus, names } = this.#parts;
    this.#subscription = await bus.subscribe(names.laneOfKeepers, {}, (message) => this.#receive(message));
  }

  stop = once(async () => {
    await this.#subscription?.stop();
    for (const { timer } of this.#later.values()) timer.cancel();
  });

  ask(keeper: string, ask: FlowAsk, recorded?: () => void): "asked" | "elsewhere" {
    const partition = this.#parts.partitionOf(keeper);
    if (!partition) {
      this.#holders.delete(keeper);
      return "elsewhere";
    }
    if (ask.kind === "ended") {
      const { instanceId, status, messageId } = ask;
      const command: FlowCommand = { kind: "ended", instanceId, status };
      this.#accept(partition, keeper, mailOf({ json: command }, messageId, recorded), command);
      return "asked";
    }
    const { instanceId, holder, request } = ask;
    this.#holdersOf(keeper).set(instanceId, holder);
    const mail = mailOf(request, requestIdOf(instanceId), () => this.#afterTurn(keeper, instanceId));
    const command = "json" in request ? FlowRequest.safeParse(request.json).data : undefined;
    this.#accept(partition, keeper, mail, command);
    return "asked";
  }

  async handOver(keeper: string, instanceId: string, followed: boolean): Promise<boolean> {
    const holder = this.#holders.get(keeper)?.get(instanceId);
    if (holder === undefined) return false;
    this.#holders.get(keeper)?.delete(instanceId);
    return this.#sendDecision(holder, instanceId, "go", followed);
  }

  leftOut(keeper: string, instanceId: string): void {
    const holder = this.#holders.get(keeper)?.get(instanceId);
    this.#holders.get(keeper)?.delete(instanceId);
    if (holder !== undefined) void this.#sendDecision(holder, instanceId, "left-out");
  }

  async ended(
    keeper: string,
    { instanceId, status, messageId }: Parameters<Keepers["ended"]>[1],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { names, runtime } = this.#parts;
    const ask: FlowAsk = { v: 1, kind: "ended", instanceId: InstanceId.parse(instanceId), status, messageId };
    const own = new Confirmation(runtime.clock, recordMs, signal);
    if (this.ask(keeper, ask, () => own.settle(true)) === "asked") return own.outcome;
    own.settle(false);
    return this.#isConfirmed(names.laneOfKeeper(keeper), encode(ask), recordMs);
  }

  #receive({ subject, body, reply }: CoreMessage): void {
    const keeper = this.#parts.names.parseLaneOfKeeper(subject);
    const asked = decode(FlowAsk, body);
    if (asked.kind === "ok")
      this.ask(keeper, asked.value, () => reply?.(encode({ v: 1, ok: true } satisfies FlowReply)));
  }

  /** Lets messages that the keeper only records wait for one on which it acts. */
  #accept(partition: KeeperPartition, keeper: string, mail: Mail, command: FlowCommand | undefined): void {
    partition.ask(keeper, {
      name: keeperQueries.mayWait,
      input: command,
      answer: (asked) => {
        if (asked.kind === "refused" || asked.json !== "true") return this.#putAll(keeper, mail);
        const later = this.#later.get(keeper);
        if (!later) {
          const timer = this.#parts.runtime.clock.after(batchMs, () => this.#putAll(keeper));
          this.#later.set(keeper, { mails: [mail], timer });
        } else if (later.mails.push(mail) >= batchMost) this.#putAll(keeper);
      },
    });
  }

  #putAll(keeper: string, ...more: Mail[]): void {
    const later = this.#later.get(keeper);
    later?.timer.cancel();
    this.#later.delete(keeper);
    const partition = this.#parts.partitionOf(keeper);
    if (!partition) return; // the sender notices the missing answer
    if (!this.#begun.has(keeper)) {
      partition.put(keeper, {
        message: { kind: "start", name: flowOrchestration, input: { json: {} } },
        delivery: undefined,
        done: () => this.#begun.add(keeper),
      });
    }
    for (const mail of [...(later?.mails ?? []), ...more]) partition.put(keeper, mail);
  }

  /** Called after the turn of a request: sends the holder a decision that no effect of the turn has sent. */
  #afterTurn(keeper: string, instanceId: string): void {
    const holders = this.#holdersOf(keeper);
    const holder = holders.get(instanceId);
    if (holder === undefined) return;
    this.#parts.partitionOf(keeper)?.ask(keeper, {
      name: keeperQueries.start,
      input: instanceId,
      answer: (asked) => {
        if (asked.kind === "refused" || holders.get(instanceId) !== holder) return;
        const { word, followed }: KeptStart = JSON.parse(asked.json);
        if (word !== "waiting") holders.delete(instanceId);
        // The start of the instance that fails with the reason may be unpublished: the holder will send its
        // request by the inbox (FLOW-3).
        if (word === "left-out") return;
        void this.#sendDecision(holder, instanceId, word, followed).then((held) => {
          if (!held && holders.get(instanceId) === holder) holders.delete(instanceId);
        });
      },
    });
  }

  async #sendDecision(
    holder: string,
    instanceId: string,
    word: FlowWord["word"],
    followed = false,
  ): Promise<boolean> {
    const { id, names, onDecision } = this.#parts;
    const decision: FlowWord = { v: 1, instanceId: InstanceId.parse(instanceId), word, followed };
    if (holder === id) return onDecision(decision);
    return this.#isConfirmed(names.laneOfHolder(holder), encode(decision), decisionMs);
  }

  async #isConfirmed(subject: string, body: Uint8Array, timeoutMs: number): Promise<boolean> {
    try {
      const reply = await this.#parts.bus.request(subject, body, { timeoutMs });
      if (reply.kind !== "reply") return false;
      const answer = decode(FlowReply, reply.body);
      return answer.kind === "ok" && answer.value.ok;
    } catch {
      return false; // the bus is away: the caller sends the message by the inbox
    }
  }

  #holdersOf(keeper: string): Map<string, string> {
    const known = this.#holders.get(keeper);
    if (known) return known;
    const holders = new Map<string, string>();
    this.#holders.set(keeper, holders);
    return holders;
  }
}

/** The open confirmations of each signal: one listener for all, because a partition has many. */
const waiting = new WeakMap<AbortSignal, Set<Confirmation>>();

/** Resolves with true if it is confirmed in time, otherwise with false. */
class Confirmation {
  readonly outcome: Promise<boolean>;
  readonly #waiting: Set<Confirmation>;
  readonly #timer: Timer;
  #resolve: (confirmed: boolean) => void = () => undefined;

  constructor(clock: Clock, timeoutMs: number, signal: AbortSignal) {
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#waiting = waitingFor(signal);
    this.#waiting.add(this);
    this.#timer = clock.after(timeoutMs, () => this.settle(false));
    if (signal.aborted) this.settle(false);
  }

  settle(confirmed: boolean): void {
    this.#timer.cancel();
    this.#waiting.delete(this);
    this.#resolve(confirmed);
  }
}

function waitingFor(signal: AbortSignal): Set<Confirmation> {
  const known = waiting.get(signal);
  if (known) return known;
  const all = new Set<Confirmation>();
  waiting.set(signal, all);
  const giveUp = () => {
    for (const one of [...all]) one.settle(false);
  };
  signal.addEventListener("abort", giveUp, { once: true });
  return all;
}

const mailOf = (payload: Payload, messageId: string, done: (() => void) | undefined): Mail => ({
  message: { kind: "signal", name: flowSignal, payload, messageId: shortMessageId(messageId) },
  delivery: undefined,
  done,
});
