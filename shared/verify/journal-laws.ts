/** I1, I12, I13, I17, CALL-1: compares the users' journal with the histories. */
import { isDeepStrictEqual } from "node:util";
import type { Commit, Payload } from "../../schemas/index.ts";
import type { Journal } from "./journal.ts";
import type { Findings, OnViolation } from "./report.ts";

interface ReceivedSignal {
  name: string;
  messageId: string | undefined;
  payload: Payload;
}

/** Gathers from one history what the journal mentions, then reports the differences. */
export class AgainstJournal {
  readonly #journal: Journal;
  readonly #instanceId: string;
  readonly #signals: ReceivedSignal[] = [];
  readonly #updates = new Map<string, { of: number; execution: number; answer?: Payload }>();
  readonly #open = new Map<string, string>();
  #end: { status: string; output: Payload | undefined } | undefined;

  constructor(journal: Journal, instanceId: string) {
    this.#journal = journal;
    this.#instanceId = instanceId;
  }

  commit({ events }: Commit, execution: number): void {
    for (const event of events) {
      switch (event.kind) {
        case "signal.received":
          if (this.#journal.signals.has(this.#instanceId))
            this.#signals.push({ name: event.name, messageId: event.messageId, payload: event.payload });
          break;
        case "update.accepted":
          this.#updates.set(event.updateId, { of: event.id, execution });
          this.#open.set(`${execution}.${event.id}`, event.updateId);
          break;
        case "update.completed": {
          const update = this.#updates.get(this.#open.get(`${execution}.${event.of}`) ?? "");
          if (update) update.answer = event.answer;
          break;
        }
        case "instance.completed":
          this.#end = { status: "completed", output: event.output };
          break;
        case "instance.failed":
        case "instance.cancelled":
        case "instance.terminated":
          this.#end = { status: event.kind.slice("instance.".length), output: undefined };
          break;
        default:
      }
    }
  }

  end(onViolation: OnViolation): void {
    this.#checkEnd(onViolation);
    this.#checkSignals(onViolation);
    for (const { updateId, answer } of this.#journal.updates.get(this.#instanceId) ?? []) {
      const found = this.#updates.get(updateId);
      if (!found) onViolation("I12", `update ${updateId} was answered, but is not in the history`);
      else if (answer !== undefined && differs(found.answer, answer))
        onViolation(
          "I12",
          `update ${updateId} was answered ${shown(answer)}, but the history has ${shown(found.answer)}`,
        );
    }
  }

  #checkEnd(onViolation: OnViolation): void {
    const seen = this.#journal.ended.get(this.#instanceId);
    if (seen && seen.status !== this.#end?.status)
      onViolation(
        "I1",
        `a client saw the status ${seen.status}, but its history ${this.#end ? `ends ${this.#end.status}` : "has no end"}`,
      );
    else if (seen?.output !== undefined && differs(this.#end?.output, seen.output))
      onViolation(
        "I1",
        `a client saw the result ${shown(seen.output)}, but the history has ${shown(this.#end?.output)}`,
      );
    if (this.#journal.started.get(this.#instanceId)?.ends && !this.#end)
      onViolation("I17", "it was started and should have come to its end, but has none");
  }

  /**
   * An ended instance may lack a late signal; signals that are in the history are there once and in order.
   */
  #checkSignals(onViolation: OnViolation): void {
    const bySender = new Map<string, number>();
    for (const { name, messageId, value, sender = "" } of this.#journal.signals.get(this.#instanceId) ?? []) {
      const same = (heard: ReceivedSignal) =>
        heard.name === name &&
        (messageId === undefined || heard.messageId === messageId) &&
        (value === undefined || !differs(heard.payload, value));
      const first = this.#signals.findIndex(same);
      const what = `signal ${name}${messageId === undefined ? "" : ` (${messageId})`}${value === undefined ? "" : ` ${shown(value)}`}`;
      if (first < 0) {
        if (!this.#end) onViolation("I12", `${what} was acknowledged, but is not in the history`);
        continue;
      }
      if (messageId !== undefined && this.#signals.findLastIndex(same) !== first)
        onViolation("I12", `${what} is in the history twice`);
      // Signals without an id and a value cannot be distinguished.
      if (messageId === undefined && value === undefined) continue;
      if (first < (bySender.get(sender) ?? -1))
        onViolation("I12", `${what} was received before what its sender sent earlier`);
      bySender.set(sender, Math.max(first, bySender.get(sender) ?? -1));
    }
  }
}

/** I13, CALL-1: checks what the code of sessions wrote to the journal. */
export function checkSessionJournal(journal: Journal, findings: Findings): void {
  for (const [attachment, shutdowns] of journal.shutdowns)
    if (shutdowns.length > 1)
      findings.violation(
        "I13",
        undefined,
        `the shutdown of session ${attachment} (session.epoch) ran ${shutdowns.length} times`,
      );
  for (const [attachment, calls] of journal.calls) {
    const latest = new Map<string, number>();
    const ran = new Set<string>();
    for (const { instanceId, execution, of, attempt, ordered } of calls) {
      const key = `${instanceId}.${execution}.${of}.${attempt}`;
      if (ran.has(key))
        findings.violation(
          "CALL-1",
          instanceId,
          `attempt ${attempt} of call ${of} ran twice on ${attachment} (session.epoch)`,
        );
      ran.add(key);
      // A later attempt runs when it is due, whatever calls came meanwhile. A call of a shared pool whose member was cut
      // off comes to another member (MEMBER-3), also when that one has had later calls.
      if (attempt > 1 || ordered === false) continue;
      const before = latest.get(`${instanceId}.${execution}`) ?? 0;
      if (of < before)
        findings.violation(
          "CALL-1",
          instanceId,
          `call ${of} ran after call ${before} on ${attachment} (session.epoch)`,
        );
      latest.set(`${instanceId}.${execution}`, Math.max(of, before));
    }
  }
}

/** A value in the object store is not fetched for this comparison. */
const differs = (payload: Payload | undefined, value: unknown): boolean =>
  payload === undefined || ("json" in payload && !isDeepStrictEqual(payload.json, value));

const shown = (value: unknown): string => (JSON.stringify(value) ?? "nothing").slice(0, 120);
