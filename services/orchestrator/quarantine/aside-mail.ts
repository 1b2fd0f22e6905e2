/**
 * Stores the messages that wait for an instance that was set aside in a stream of their own. In the inbox
 * they would count against the unacknowledged messages of the partition's consumer, and enough of them would
 * stop all other instances (T9).
 *
 * ASIDE-1 A moved message keeps its order and its sequence in the inbox: recognised by that sequence, it is
 *    applied once (T7).
 * ASIDE-2 Moved messages come back when a turn has succeeded, before anything newer; the message that asks
 *    for a look at the instance stays in the inbox until nothing is aside any more, and brings the next owner
 *    to it.
 */
import { z } from "zod";
import {
  type Delivery,
  decode,
  type Headers,
  headerNames,
  type StoredMessage,
} from "../../../shared/bus/index.ts";
import { Fault, isFault } from "../../../shared/errors/index.ts";
import type { InboxMessage } from "../../../shared/replay/index.ts";
import { announceFault, sleep } from "../../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import { followerOf } from "../flow/held-starts.ts";
import type { Mail } from "../mail.ts";
import { parseInbox } from "../parse-inbox.ts";
import { publishEffect } from "../publishing/publish.ts";

type Deps = Pick<OrchestratorDeps, "bus" | "names" | "runtime" | "capabilities">;

const header = headerNames.aside;
/** The message as it was in the inbox. */
const Original = z.object({
  subject: z.string(),
  seq: z.int(),
  at: z.number(),
  headers: z.record(z.string(), z.string()),
});

/** How many messages one turn reads. */
const page = 256;

export class AsideMail {
  readonly #deps: Deps;
  readonly #instanceId: string;
  readonly #signal: AbortSignal;
  #moving: Promise<unknown> = Promise.resolve();

  constructor(deps: Deps, instanceId: string, signal: AbortSignal) {
    this.#deps = deps;
    this.#instanceId = instanceId;
    this.#signal = signal;
  }

  /**
   * Moves messages one after another. Calls `onMoved` when the inbox can drop the message, `onStuck` if it
   * cannot be moved.
   */
  move(delivery: Delivery, onMoved: () => void, onStuck: () => void): void {
    this.#moving = this.#moving.then(() =>
      this.#move(delivery).then((moved) => (moved ? onMoved() : onStuck())),
    );
  }

  async #move({ subject, seq, at, headers, body }: Delivery): Promise<boolean> {
    const { bus, names, runtime, capabilities } = this.#deps;
    const was: z.infer<typeof Original> = { subject, seq, at, headers: { ...headers } };
    try {
      const stored = await publishEffect(
        { bus, runtime, capabilities, signal: this.#signal },
        names.aside(this.#instanceId),
        body,
        { msgId: `aside-${seq}`, headers: { [header]: JSON.stringify(was) } },
      );
      return stored !== undefined;
    } catch (error) {
      // As a rule the message is too large together with the added header: it stays in the inbox.
      if (!isFault(error)) throw error;
      announceFault(runtime, "set aside", error);
      return false;
    }
  }

  /** The messages set aside from this position on, oldest first, and where the next page begins. */
  async read(from: number): Promise<{ mails: Mail[]; next: number }> {
    await this.#moving;
    const stored = await this.#stored(from);
    return { mails: stored.flatMap((one) => this.#mail(one)), next: (stored.at(-1)?.seq ?? 0) + 1 };
  }

  /** A replica that lags would hide what was moved a moment ago, so the leader is asked (HISTORY-4). */
  async #stored(from: number): Promise<StoredMessage[]> {
    const { bus, names, runtime } = this.#deps;
    const subject = names.aside(this.#instanceId);
    for (;;) {
      const last = await bus.last(names.asideStream, subject, { leader: true });
      if (!last || last.seq < from) return [];
      const stored = (await bus.read(names.asideStream, subject, from, page)) ?? [];
      if (stored.length === page || (stored.at(-1)?.seq ?? 0) >= last.seq) return stored;
      await sleep(runtime.clock, 20, this.#signal);
      if (this.#signal.aborted)
        throw new Fault("transient", {
          code: "aside_incomplete",
          message: `${names.asideStream} does not show message ${last.seq}`,
        });
    }
  }

  #mail(stored: StoredMessage): Mail[] {
    const was = decode(Original, Buffer.from(stored.headers[header] ?? ""));
    if (was.kind === "invalid")
      throw new Fault("contract", {
        code: "aside_unreadable",
        message: `message ${stored.seq} of ${stored.subject} cannot be brought back: ${was.message}`,
      });
    const opened = parseInbox(this.#deps.names, { ...was.value, body: stored.body });
    const delivery = this.#delivery(was.value, stored);
    if (opened.kind === "message") return [{ message: admitted(opened.message), delivery, aside: true }];
    delivery.ack(); // it parsed before it was moved: a message that no longer parses is dropped
    return [];
  }

  #delivery(
    was: { subject: string; seq: number; at: number; headers: Headers },
    { seq, body }: StoredMessage,
  ): Delivery {
    const { bus, names } = this.#deps;
    const remove = () => bus.deleteMessage(names.asideStream, seq);
    return {
      ...was,
      body,
      deliveries: 2,
      order: 0,
      // If the removal fails, the message is recognised by its sequence when it is read again.
      ack: () => void remove().catch(() => undefined),
      ackSync: remove,
      nak: () => undefined,
      working: () => undefined,
      putAside: () => undefined,
    };
  }
}

/** A start under limits was handed over by its keeper before it was moved aside. */
const admitted = (message: InboxMessage): InboxMessage =>
  message.kind === "start" && message.flow
    ? { ...message, flow: undefined, follower: followerOf(message) }
    : message;
