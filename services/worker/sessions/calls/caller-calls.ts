/**
 * Calls from outside any instance: from a client, the gateway, or an orchestrator that stands in for a plain
 * request. They are not stored: the caller keeps asking while it waits, so holder and caller know that the
 * other is alive.
 *
 * CALLER-1 A holder that is asked again for a call answers that it has it, or repeats its answer: the call
 *    never runs twice here.
 * CALLER-2 A caller that has not asked for a while is gone: its call is cancelled and the session stays.
 * CALLER-3 A holder sends no answer to a call under a right that is over (HOLD-1): the caller learns of the
 *    loss from the register.
 */
import {
  type ActivityReport,
  type LaneAnswer,
  type LaneReturn,
  laneOwnerHeader,
  type SessionCall,
} from "../../../../schemas/index.ts";
import { type CoreMessage, encode } from "../../../../shared/bus/index.ts";
import type { Timer } from "../../../../shared/runtime/index.ts";
import type { ReplyPath } from "../../lane/index.ts";
import type { SessionDeps } from "../session-deps.ts";
import type { OnWork } from "./work-feed.ts";

/** Callers ask every second; after this long without a question the caller counts as gone. */
const goneMs = 5_000;
const lookMs = 1_000;
/** A call that ends within this time is answered in the reply itself. */
const soonMs = 5;
/** How long answers are kept for callers that missed theirs; callers ask again within a second. */
const keptMs = 10_000;
const mostKeptBytes = 8 * 1024 * 1024;

interface Open {
  readonly kind: "open";
  readonly sessionId: string;
  readonly call: SessionCall;
  askedAt: number;
}
interface Over {
  readonly kind: "over";
  readonly answer: Uint8Array;
  readonly at: number;
}

export class CallerCalls {
  readonly #deps: SessionDeps;
  readonly #onWork: OnWork;
  /** Key: call and epoch. Ended calls are in the order in which they ended. */
  readonly #calls = new Map<string, Open | Over>();
  #keptBytes = 0;
  #timer: Timer | undefined;

  constructor(deps: SessionDeps, onWork: OnWork) {
    this.#deps = deps;
    this.#onWork = onWork;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  receive(message: CoreMessage, sessionId: string, call: SessionCall): void {
    const { clock } = this.#deps.runtime;
    const key = keyOf(call);
    const known = this.#calls.get(key);
    // CALLER-1
    if (known?.kind === "over") return message.reply?.(known.answer);
    if (known) {
      known.askedAt = clock.monotonic();
      return message.reply?.(this.#takenAnswer());
    }
    this.#calls.set(key, { kind: "open", sessionId, call, askedAt: clock.monotonic() });
    const back = new CallerReplyPath(this.#deps, message, call, {
      ended: (answer) => this.#end(key, answer),
      taken: () => this.#takenAnswer(),
    });
    if (!this.#onWork(sessionId, call, back)) {
      this.#calls.delete(key);
      return back.refuse();
    }
    back.take();
    this.#timer ??= clock.after(lookMs, () => this.#look());
  }

  #takenAnswer(): Uint8Array {
    return encode({ v: 1, kind: "taken", workerId: this.#deps.identity.workerId });
  }

  #end(key: string, answer: Uint8Array | undefined): void {
    this.#calls.delete(key);
    if (!answer || answer.length > mostKeptBytes) return;
    this.#calls.set(key, { kind: "over", answer, at: this.#deps.runtime.clock.monotonic() });
    this.#keptBytes += answer.length;
    if (this.#keptBytes > mostKeptBytes) this.#forget(Number.POSITIVE_INFINITY);
  }

  /** Ended calls come after open ones in the map, except for calls that have been open for long. */
  #forget(before: number): void {
    for (const [key, call] of this.#calls) {
      if (call.kind === "open") continue;
      if (call.at > before || (before === Number.POSITIVE_INFINITY && this.#keptBytes <= mostKeptBytes))
        return;
      this.#calls.delete(key);
      this.#keptBytes -= call.answer.length;
    }
  }

  #look(): void {
    const { bus, runtime } = this.#deps;
    const now = runtime.clock.monotonic();
    this.#forget(now - keptMs);
    for (const [key, call] of this.#calls) {
      if (call.kind === "over") continue;
      // Callers cannot ask while the server is away.
      if (!bus.connected()) call.askedAt = now;
      if (now - call.askedAt < goneMs) continue;
      call.askedAt = now;
      const { epoch, task } = call.call;
      const { instanceId, execution, of } = task;
      const held = this.#onWork(call.sessionId, { v: 1, kind: "cancel", epoch, instanceId, execution, of }); // CALLER-2
      if (!held) this.#calls.delete(key);
    }
    this.#timer = this.#calls.size > 0 ? runtime.clock.after(lookMs, () => this.#look()) : undefined;
  }
}

interface CallerReplyOptions {
  ended(answer: Uint8Array | undefined): void;
  taken(): Uint8Array;
}

/** Sends the result of one call to its caller. */
class CallerReplyPath implements ReplyPath {
  readonly #deps: SessionDeps;
  readonly #call: SessionCall;
  readonly #caller: string;
  readonly #options: CallerReplyOptions;
  #reply: CoreMessage["reply"];
  #soon: Timer | undefined;

  constructor(deps: SessionDeps, message: CoreMessage, call: SessionCall, options: CallerReplyOptions) {
    this.#deps = deps;
    this.#call = call;
    this.#caller = message.headers[laneOwnerHeader] ?? "";
    this.#reply = message.reply;
    this.#options = options;
  }

  refuse(): void {
    this.#answer(encode({ v: 1, kind: "refused" } satisfies LaneAnswer));
  }

  take(): void {
    if (!this.#reply) return;
    this.#soon = this.#deps.runtime.clock.after(soonMs, () => this.#answer(this.#options.taken()));
  }

  async report(instanceId: string, report: ActivityReport): Promise<boolean> {
    if (report.result.kind === "started") return true;
    const { bus, names, identity } = this.#deps;
    const answer = encode({ v: 1, kind: "done", workerId: identity.workerId, report });
    this.#options.ended(answer);
    if (this.#reply) this.#answer(answer);
    // If this message gets lost, the caller gets the answer when it asks again.
    else bus.send(names.laneOfOwner(this.#caller, instanceId, "report"), encode(report));
    return true;
  }

  drop(untouched: boolean): void {
    this.#options.ended(undefined);
    if (this.#reply && untouched) return this.refuse();
    const { bus, names } = this.#deps;
    const { instanceId, execution, of, attempt, capability } = this.#call.task;
    const returned: LaneReturn = { v: 1, execution, of, attempt, untouched, capability };
    bus.send(names.laneOfOwner(this.#caller, instanceId, "returned"), encode(returned));
  }

  #answer(body: Uint8Array): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    const reply = this.#reply;
    this.#reply = undefined;
    reply?.(body);
  }
}

const keyOf = ({ epoch, task: { instanceId, execution, of, attempt } }: SessionCall): string =>
  `${instanceId}.${execution}.${of}.${attempt}.${epoch}`;
