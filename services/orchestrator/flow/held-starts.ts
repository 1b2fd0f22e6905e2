/**
 * Starts under limits, held by the owner of their instance until their keeper has decided. A start lies in
 * the inbox of its own instance, as every start does; its owner asks the keeper straight, without a durable
 * message.
 *
 * FLOW-4 A held start is acknowledged when it runs, when it was left out, or when its keeper has it in its
 *    history and sends it again. Nothing else removes it: the next owner of the partition finds it and asks
 *    again.
 * FLOW-6 A start that waits and is asked to cancel or terminate ends before its code runs: its instance
 *    begins and ends in one commit, and its keeper gets that end as it gets any other.
 */
import {
  type FlowAsk,
  type FlowReply,
  type FlowRequest,
  FlowWord,
  flowInstance,
  flowOrchestration,
  flowShards,
  flowSignal,
  InstanceId,
  messageIdHeader,
  Name,
  type Payload,
} from "../../../schemas/index.ts";
import {
  type Bus,
  type Delivery,
  decode,
  encode,
  type Payloads,
  type Stoppable,
  type Subjects,
} from "../../../shared/bus/index.ts";
import { noCapabilities } from "../../../shared/capabilities/index.ts";
import type { InboxMessage } from "../../../shared/replay/index.ts";
import {
  announceFault,
  hash32,
  once,
  type Runtime,
  type Service,
  type Timer,
  token,
} from "../../../shared/runtime/index.ts";
import type { LaneSeats } from "../lane/lane-work.ts";
import type { Mail } from "../mail.ts";
import { inboxHeaders } from "../parse-inbox.ts";
import { publishEffect } from "../publishing/publish.ts";

type Start = Extract<InboxMessage, { kind: "start" }>;

/** The partition that a held start belongs to. */
export interface Holding {
  put(instanceId: string, mail: Mail): void;
  readonly signal: AbortSignal;
  /** A start that waits keeps a message of the partition's feed unacknowledged. */
  readonly seats: LaneSeats;
}

interface HeldStartsParts {
  readonly id: string;
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly payloads: Payloads;
  /** Passes the request to the keeper if this process owns it. */
  ask(keeper: string, ask: FlowAsk): "asked" | "elsewhere";
}

interface HeldStart {
  readonly instanceId: string;
  readonly start: Start;
  readonly holding: Holding;
  /** The newest delivery of the message is the one to settle. */
  delivery: Delivery;
  /** Runs until the keeper has decided. */
  timer: Timer | undefined;
  seated: boolean;
}

/** How long the owner of a keeper may take to answer; then the keeper gets the request by its inbox. */
const decideWithinMs = 3_000;

/** The keeper of a key. */
export const keeperOfKey = (key: string): string => flowInstance(hash32(key) % flowShards);

export class HeldStarts implements Service {
  readonly #parts: HeldStartsParts;
  readonly #held = new Map<string, HeldStart>();
  #subscription: Stoppable | undefined;

  constructor(parts: HeldStartsParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const { bus, names, id } = this.#parts;
    this.#subscription = await bus.subscribe(names.laneOfHolder(id), {}, ({ body, reply }) => {
      const word = decode(FlowWord, body);
      reply?.(encode({ v: 1, ok: word.kind === "ok" && this.onDecision(word.value) } satisfies FlowReply));
    });
  }

  stop = once(async () => {
    await this.#subscription?.stop();
    for (const held of this.#held.values()) held.timer?.cancel();
  });

  hold({
    instanceId,
    start,
    delivery,
    holding,
  }: Pick<HeldStart, "instanceId" | "start" | "delivery" | "holding">): void {
    const known = this.#held.get(instanceId);
    if (known && known.delivery.seq !== delivery.seq) return delivery.ack(); // a second start of an id changes nothing
    const held = known ?? { instanceId, start, holding, delivery, timer: undefined, seated: false };
    held.delivery = delivery;
    this.#held.set(instanceId, held);
    if (held.timer === undefined) void this.#ask(held);
  }

  /** Carries out the keeper's decision on a start. Returns false if this process does not hold the start. */
  onDecision({ instanceId, word, followed }: FlowWord): boolean {
    const held = this.#held.get(instanceId);
    if (!held) return false;
    switch (word) {
      case "go": {
        this.#letGo(held);
        const { start, holding, delivery } = held;
        const follower = followed ? followerOf(start) : undefined;
        holding.put(instanceId, { message: { ...start, flow: undefined, follower }, delivery });
        return true;
      }
      case "waiting":
        return this.#keep(held);
      case "left-out":
        return this.#acknowledge(held);
    }
  }

  /**
   * Called when the instance was started by another message: by its keeper, or without limits. An owner before
   * may have begun it by the held one, and died before it published what followed: the instance has to see it (T3).
   */
  release(instanceId: string): void {
    const held = this.#held.get(instanceId);
    if (!held) return;
    this.#letGo(held);
    const { start, holding, delivery } = held;
    holding.put(instanceId, {
      message: { ...start, flow: undefined, follower: followerOf(start) },
      delivery,
    });
  }

  /** Ends a start that this process holds before its code runs (FLOW-6), unless an earlier owner has begun it. */
  endUnbegun(instanceId: string, over: NonNullable<Start["over"]>): void {
    const held = this.#held.get(instanceId);
    if (!held) return;
    this.#letGo(held);
    const { start, holding, delivery } = held;
    holding.put(instanceId, {
      message: { ...start, flow: undefined, follower: followerOf(start), over },
      delivery,
    });
  }

  /**
   * Called when another orchestrator owns the partition: the server delivers the starts to that one again.
   */
  drop(holding: Holding): void {
    for (const held of this.#held.values()) if (held.holding === holding) this.#letGo(held);
  }

  async #ask(held: HeldStart): Promise<void> {
    const { id, bus, names, runtime, ask } = this.#parts;
    const { instanceId, start } = held;
    const keeper = keeperOfKey(start.flow?.key ?? "");
    held.timer = runtime.clock.after(decideWithinMs, () => void this.#handOver(held, keeper));
    try {
      const request = await this.#requestOf(held, keeper);
      const asked: FlowAsk = {
        v: 1,
        kind: "start",
        holder: id,
        instanceId: InstanceId.parse(instanceId),
        request,
      };
      if (ask(keeper, asked) === "elsewhere") bus.send(names.laneOfKeeper(keeper), encode(asked));
    } catch (error) {
      this.#complain(instanceId, error);
    }
  }

  async #requestOf(
    { instanceId, start, delivery }: HeldStart,
    keeper: string,
    again?: true,
  ): Promise<Payload> {
    const { payloads } = this.#parts;
    if (!start.flow) throw new Error("unreachable: a start without limits");
    const request: FlowRequest = {
      ...{ kind: "start", instanceId: InstanceId.parse(instanceId), orchestration: Name.parse(start.name) },
      ...{ input: await payloads.unwrap(start.input), flow: start.flow, seq: delivery.seq, again },
    };
    return payloads.wrap(request, keeper);
  }

  /** The keeper has not decided in time: it gets the request by its inbox, and starts the instance by a message. */
  async #handOver(held: HeldStart, keeper: string): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    const { instanceId, holding } = held;
    const isHeld = () => this.#held.get(instanceId) === held;
    try {
      const request = await this.#requestOf(held, keeper, true);
      const headers: Record<string, string> = { [messageIdHeader]: `again-${requestIdOf(instanceId)}` };
      if ("blob" in request) headers[inboxHeaders.blob] = JSON.stringify(request.blob);
      // Under random message ids, which no other client can have used: the keeper recognises the request
      // by its header (SEC-2).
      const outbox = { bus, runtime, capabilities: noCapabilities, signal: holding.signal };
      const unique = token(runtime.random);
      await publishEffect(outbox, names.start(keeper, flowOrchestration), {}, { msgId: `keeper-${unique}` });
      const body = "json" in request ? request.json : undefined;
      await publishEffect(outbox, names.signal(keeper, flowSignal), body, {
        msgId: `flow-${unique}`,
        headers,
      });
      if (isHeld() && !holding.signal.aborted) this.#keep(held);
    } catch (error) {
      this.#complain(instanceId, error);
      if (isHeld()) void this.#ask(held);
    }
  }

  /** Its keeper has it in its history. Returns false if too many are kept: its keeper starts it by a message. */
  #keep(held: HeldStart): boolean {
    held.timer?.cancel();
    held.timer = undefined;
    const { seats } = held.holding;
    if (!held.seated && seats.free <= 0) return !this.#acknowledge(held);
    if (!held.seated) seats.free--;
    held.seated = true;
    return true;
  }

  #acknowledge(held: HeldStart): true {
    this.#letGo(held);
    held.delivery.ack();
    return true;
  }

  #letGo(held: HeldStart): void {
    held.timer?.cancel();
    if (held.seated) held.holding.seats.free++;
    this.#held.delete(held.instanceId);
  }

  #complain(instanceId: string, error: unknown): void {
    announceFault(this.#parts.runtime, "flow", error, {
      code: "start_not_asked",
      about: `start of ${instanceId} under limits`,
    });
  }
}

/** The keeper of its key, which receives a message when the instance ends. */
export const followerOf = ({ flow }: Start): Start["follower"] =>
  flow && { instanceId: Name.parse(keeperOfKey(flow.key)), signal: Name.parse(flowSignal) };

/** Message id of a start's request: the same whichever way it reaches the keeper. */
export const requestIdOf = (instanceId: string): string => `flow-${instanceId}`;
