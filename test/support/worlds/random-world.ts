/**
 * Everything around an instance, out of its mind: workers, watchers, children, people and clocks that answer in any
 * order, twice, late, for others, under old epochs. Choices come from a list of numbers, so that a failure shrinks.
 */
import { type Attachment, SessionState } from "../../../schemas/index.ts";
import type { InboxMessage, OpenTask } from "../../../shared/replay/index.ts";
import type { Bench } from "./instance-bench.ts";
import {
  activated,
  began,
  cancel,
  checkpointed,
  childDone,
  childFailed,
  claimed,
  closedByOwner,
  completed,
  failed,
  held,
  initFailed,
  lost,
  parked,
  refused,
  signal,
  start,
  stateMissing,
  terminate,
  wake,
  wanted,
} from "./instance-messages.ts";
import { lentSession } from "./random-program.ts";

export type Happened =
  | { kind: "turn"; advanceMs: number; messages: InboxMessage[] }
  /** A deployment without the program's code, and one that has it again. */
  | { kind: "deployed"; code: "gone" | "back" };

type Move = () => InboxMessage;

export const live = (bench: Bench, happened: Happened, app: Record<string, unknown>): Promise<unknown> => {
  if (happened.kind === "deployed") return bench.deploy(happened.code === "back" ? app : {});
  bench.advance(happened.advanceMs);
  return bench.turn(...happened.messages);
};

const lent = (onLost: "fail" | "reclaim", isParked: boolean): SessionState =>
  SessionState.parse({
    sessionId: lentSession,
    owner: "boss",
    type: "bare",
    options: {
      creationTimeoutMs: 30_000,
      onLost,
      maxAutoRetries: 1,
      maxInitAttempts: 3,
      requires: {},
      lazy: false,
      metadata: {},
    },
    openedAt: 1,
    attachments: 1,
    initFailures: 0,
    phase: isParked ? { kind: "parked" } : { kind: "active", on: held(1, 1) },
  });

export class RandomWorld {
  readonly #bench: Bench;
  readonly #app: Record<string, unknown>;
  readonly #choices: readonly number[];
  #next = 0;
  #epoch = 1;
  readonly #lentHolders = new Map<number, Attachment>();
  #code: "gone" | "back" = "back";
  readonly #said: InboxMessage[] = [];
  /** Everything that happened, to be lived again. */
  readonly log: Happened[] = [];

  constructor(bench: Bench, app: Record<string, unknown>, choices: readonly number[]) {
    this.#bench = bench;
    this.#app = app;
    this.#choices = choices;
  }

  get exhausted(): boolean {
    return this.#next >= this.#choices.length;
  }

  #choose(below: number): number {
    return (this.#choices[this.#next++] ?? 0) % below;
  }

  async begin(): Promise<void> {
    const early = this.#choose(4) === 0 ? [signal("a", "early")] : [];
    const granted = [lent(this.#choose(2) === 0 ? "fail" : "reclaim", this.#choose(2) === 0)];
    await this.#happen(0, [...early, start("program", undefined, { granted })]);
  }

  async step(): Promise<void> {
    if (this.#choose(12) === 0) await this.#deploy(this.#code === "gone" ? "back" : "gone");
    const moves = this.#moves();
    const messages: InboxMessage[] = [];
    for (let count = 1 + this.#choose(3); count > 0; count--) {
      const message = moves[this.#choose(moves.length)]?.();
      if (message) messages.push(message);
    }
    await this.#happen(this.#choose(3) === 0 ? this.#choose(8000) : 0, messages);
  }

  /** Everybody behaves from now on: what can go on goes on. */
  async settle(): Promise<void> {
    if (this.#code === "gone") await this.#deploy("back");
    const { state } = this.#bench;
    const messages: InboxMessage[] = [signal("a", 0), signal("b", 0)];
    for (const session of state.sessions.values()) {
      const { kind } = session.phase;
      if (kind === "opening" || kind === "claimed")
        messages.push(activated(session.sessionId, this.#holderOf(session)));
      else if (kind === "parked" && session.owner !== state.instanceId)
        messages.push(activated(session.sessionId, this.#lentHolder(session.attachments + 1)));
    }
    for (const task of state.tasks.values())
      if (task.target.kind !== "session" || task.sentEpoch !== undefined) messages.push(this.#done(task));
    for (const of of state.children.keys()) messages.push(childDone(of, 0, state.execution));
    await this.#happen(10_000, [wake(), ...messages]);
  }

  async #happen(advanceMs: number, messages: InboxMessage[]): Promise<void> {
    this.#said.push(...messages);
    await this.#live({ kind: "turn", advanceMs, messages });
  }

  async #deploy(code: "gone" | "back"): Promise<void> {
    this.#code = code;
    await this.#live({ kind: "deployed", code });
  }

  async #live(happened: Happened): Promise<void> {
    this.log.push(happened);
    await live(this.#bench, happened, this.#app);
  }

  #moves(): Move[] {
    const { state } = this.#bench;
    const moves: Move[] = [
      wake,
      () => signal("a", this.#next),
      () => signal("b", this.#next),
      () => this.#said[this.#choose(this.#said.length)] ?? wake(),
      () => (this.#choose(6) === 0 ? (this.#choose(2) === 0 ? cancel("why not") : terminate()) : wake()),
    ];
    for (const task of state.tasks.values()) moves.push(...this.#taskMoves(task));
    for (const of of state.children.keys())
      moves.push(
        () => childDone(of, 1, state.execution),
        () => childFailed(of),
      );
    for (const session of state.sessions.values())
      moves.push(
        ...(session.owner === state.instanceId ? this.#sessionMoves(session) : this.#lentMoves(session)),
      );
    return moves;
  }

  #about(task: OpenTask) {
    const { execution } = this.#bench.state;
    const epoch = task.target.kind === "session" ? { epoch: task.sentEpoch ?? 1 } : {};
    return { execution, attempt: task.attempt, ...epoch };
  }

  #done(task: OpenTask): InboxMessage {
    return completed(task.id, 1, this.#about(task));
  }

  #taskMoves(task: OpenTask): Move[] {
    const about = this.#about(task);
    return [
      () => completed(task.id, 1, about),
      () => completed(task.id, 1, about),
      () => failed(task.id, { retryable: this.#choose(3) > 0 }, about),
      () => began(task.id, about),
      () => completed(task.id, 2, { ...about, attempt: 1 + this.#choose(4) }),
      ...(task.target.kind === "session"
        ? [
            () => stateMissing(task.id, about),
            () => completed(task.id, 3, { ...about, epoch: 1 + this.#choose(this.#epoch + 1) }),
          ]
        : []),
    ];
  }

  #holderOf({ phase, attachments }: SessionState) {
    return phase.kind === "claimed" ? phase.on : held(Math.max(1, attachments), ++this.#epoch);
  }

  /** A lease key is never used again: an attachment has one epoch, however often its owner tells of it. */
  #lentHolder(attachment: number): Attachment {
    const on = this.#lentHolders.get(attachment) ?? held(attachment, ++this.#epoch);
    this.#lentHolders.set(attachment, on);
    return on;
  }

  /** What the owner of a granted session tells. */
  #lentMoves({ sessionId, phase, attachments }: SessionState): Move[] {
    const rarely = (move: Move) => () => (this.#choose(5) === 0 ? move() : wake());
    switch (phase.kind) {
      case "active":
        return [
          () => lost(sessionId, phase.on),
          () => parked(sessionId, phase.on),
          rarely(() => closedByOwner(sessionId)),
          () => activated(sessionId, this.#lentHolder(attachments + 1)),
        ];
      case "opening":
        return [
          () => activated(sessionId, this.#lentHolder(attachments)),
          rarely(() => refused(sessionId, attachments)),
        ];
      default:
        return [() => activated(sessionId, this.#lentHolder(attachments + 1))];
    }
  }

  #sessionMoves(session: SessionState): Move[] {
    const { sessionId, phase, attachments } = session;
    switch (phase.kind) {
      case "opening":
      case "claimed": {
        const on = this.#holderOf(session);
        return [
          () => claimed(sessionId, on),
          () => activated(sessionId, on),
          () => activated(sessionId, on),
          () => initFailed(sessionId, attachments),
          () => lost(sessionId, { attachment: attachments }),
          () => (this.#choose(5) === 0 ? refused(sessionId, attachments) : wake()),
        ];
      }
      case "active":
      case "rebuilding": {
        const { on } = phase;
        const reasons = ["expired", "drained", "crashed"] as const;
        return [
          () => lost(sessionId, on, reasons[this.#choose(3)]),
          () => parked(sessionId, on),
          () => lost(sessionId, { attachment: attachments + 1 }),
          () => checkpointed(sessionId, on, this.#next),
          () => activated(sessionId, held(attachments + 1, ++this.#epoch, on.workerId), { warm: true }),
        ];
      }
      case "parked":
        return [() => wanted(sessionId)];
      case "lost":
        return [() => activated(sessionId, held(attachments + 1, ++this.#epoch), { warm: true })];
      default:
        return [() => activated(sessionId, held(Math.max(1, attachments), ++this.#epoch))];
    }
  }
}
