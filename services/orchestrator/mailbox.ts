/**
 * The messages that wait for the turns of one instance. While every turn of the instance fails, most of them
 * move to a stream of their own (quarantine/aside-mail.ts) and come back after a turn that succeeds (T9).
 */
import type { Delivery } from "../../shared/bus/index.ts";
import type { OrchestratorDeps } from "./deps.ts";
import type { Mail } from "./mail.ts";
import { AsideMail } from "./quarantine/aside-mail.ts";

/**
 * How many messages of an instance that is set aside stay in the inbox, where they lead the next owner to the
 * instance.
 */
const keptInPlace = 8;

export class Mailbox {
  readonly #instanceId: string;
  readonly #deps: OrchestratorDeps;
  readonly #signal: AbortSignal;
  /** Called when a message that could not be moved aside waits here again. */
  readonly #onReturned: () => void;
  #mails: Mail[] = [];
  /** Inbox sequences that wait here or are in the running turn: a redelivery of one of these is ignored. */
  readonly #held = new Set<number>();
  /**
   * True while every turn of the instance fails in the same way: its messages then take no room in the
   * partition's feed (T9).
   */
  #setAside = false;
  /** Where to read on in the messages set aside, before all others; undefined if none are set aside. */
  #asideFrom: number | undefined;
  #asideMail: AsideMail | undefined;
  /** Requests to look at the parked instance, kept unacknowledged while messages are set aside. */
  #looks: Delivery[] | undefined;

  constructor(instanceId: string, deps: OrchestratorDeps, signal: AbortSignal, onReturned: () => void) {
    this.#instanceId = instanceId;
    this.#deps = deps;
    this.#signal = signal;
    this.#onReturned = onReturned;
  }

  get isEmpty(): boolean {
    return this.#mails.length === 0 && !this.hasAside;
  }

  /** True if messages that were set aside come before those that wait here. */
  get hasAside(): boolean {
    return this.#asideFrom !== undefined;
  }

  get isSetAside(): boolean {
    return this.#setAside;
  }

  get hasStart(): boolean {
    return this.#mails.some(({ message }) => message.kind === "start");
  }

  holds(seq: number): boolean {
    return this.#held.has(seq);
  }

  /** "held": a delivery of the same message is here already. "moved": the message is set aside. */
  put(mail: Mail): "waits" | "held" | "moved" {
    const seq = mail.delivery?.seq;
    if (seq !== undefined) {
      if (this.#setAside) mail.delivery?.putAside();
      if (this.#held.has(seq)) return "held";
      this.#held.add(seq);
      if (this.#setAside && this.#held.size > keptInPlace && !isLook(mail)) {
        this.#moveAside(mail);
        return "moved";
      }
    }
    this.#mails.push(mail);
    return "waits";
  }

  /**
   * Takes messages up to and including the first look: messages set aside are older than those that arrived
   * after the look (ASIDE-2). `anchored`: a message stands for the work on the lane (LANE-1).
   */
  popWaiting(anchored: boolean): Mail[] {
    const mails = this.#mails;
    const look = mails.findIndex(isLook);
    const end = look < 0 ? mails.length : look + 1;
    this.#mails = end === mails.length ? [] : mails.slice(end);
    return vouched(end === mails.length ? mails : mails.slice(0, end), anchored);
  }

  /** Takes a page of the messages that were set aside; empty if none are left. */
  async popAside(): Promise<Mail[]> {
    const from = this.#asideFrom ?? 1;
    const { mails, next } = await this.#aside().read(from);
    this.#asideFrom = next > from ? next : undefined;
    if (next > from) return mails;
    for (const look of this.#looks ?? []) this.acknowledge(look);
    this.#looks = undefined;
    return [];
  }

  /** The messages of a turn that failed: they come first in the next one. */
  putBack(mails: readonly Mail[]): void {
    this.#mails = [...mails, ...this.#mails];
  }

  /** Removes all updates from the inbox; the caller answers and acknowledges them. */
  popUpdates(): { updateId: string; delivery: Delivery }[] {
    const mails = this.#mails;
    this.#mails = mails.filter(({ message }) => message.kind !== "update");
    return mails.flatMap(({ message, delivery }) =>
      message.kind === "update" && delivery ? [{ updateId: message.updateId, delivery }] : [],
    );
  }

  /** Moves all but the first messages out of the inbox. */
  setAside(): void {
    this.#setAside = true;
    this.#asideFrom = undefined;
    const mails = this.#mails.filter(({ aside }) => !aside);
    for (const { delivery } of mails) delivery?.putAside();
    this.#mails = mails.filter((mail, index) => index < keptInPlace || !mail.delivery || isLook(mail));
    for (const mail of mails) if (!this.#mails.includes(mail)) this.#moveAside(mail);
  }

  /** Called after a turn that succeeded: messages that were set aside come next. */
  bringBack(batch: readonly Mail[]): void {
    if (this.#setAside || batch.some(isLook)) this.#asideFrom = 1;
    this.#setAside = false;
  }

  /** Acknowledges the messages of a turn that is over, all but `kept`. */
  settle(batch: readonly Mail[], kept: Delivery | undefined): void {
    for (const mail of batch) {
      const { delivery, done } = mail;
      done?.();
      if (!delivery || delivery === kept) continue;
      // Keep the look unacknowledged: it leads the next owner to the messages set aside.
      if (this.hasAside && isLook(mail)) this.#looks = [...(this.#looks ?? []), delivery];
      else this.acknowledge(delivery);
    }
  }

  acknowledge(delivery: Delivery): void {
    delivery.ack();
    this.forget(delivery);
  }

  /** A redelivery of this message counts as a new message from now on. */
  forget({ seq }: Delivery): void {
    this.#held.delete(seq);
  }

  #aside(): AsideMail {
    this.#asideMail ??= new AsideMail(this.#deps, this.#instanceId, this.#signal);
    return this.#asideMail;
  }

  #moveAside(mail: Mail): void {
    const { delivery } = mail;
    if (!delivery) return;
    const onMoved = () => this.acknowledge(delivery);
    this.#aside().move(delivery, onMoved, () => {
      this.#mails.push(mail);
      this.#onReturned();
    });
  }
}

/**
 * Without an anchor no message would be redelivered if this process died before the effects of a lane report
 * were published: such a report is turned away, and its worker puts it into the inbox instead (LANE-1, T3).
 */
function vouched(mails: Mail[], anchored: boolean): Mail[] {
  if (anchored || !mails.some(({ elsewhere }) => elsewhere)) return mails;
  for (const { elsewhere } of mails) elsewhere?.();
  return mails.filter(({ elsewhere }) => !elsewhere);
}

/** True if the message is a request to look at a parked instance. */
const isLook = ({ message, delivery }: Mail): boolean =>
  delivery !== undefined && message.kind === "wake" && message.wake?.of === 0;
