/**
 * Calls the holder of a session from outside any instance: the request goes straight to its worker, the
 * result straight back; nothing is stored. While the caller waits, it repeats the same message every second,
 * and the holder recognises it. The caller thus learns whether the call still runs, receives an answer that
 * was lost, and shows the holder that it is alive (CALLER-1, CALLER-2).
 */
import {
  ActivityReport,
  callerHeader,
  EventId,
  type HeldRoute,
  InstanceId,
  LaneAnswer,
  type LaneCalls,
  LaneReturn,
  laneOwnerHeader,
  Name,
  type Payload,
  type SessionWork,
} from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  encode,
  type Stoppable,
  type Subjects,
} from "../../bus/index.ts";
import { isFault } from "../../errors/index.ts";
import { type Runtime, token } from "../../runtime/index.ts";
import { activeTraceparent } from "../../runtime/trace.ts";

/** How a call on one holder ended. */
type CallEnd =
  | { kind: "answered"; report: ActivityReport }
  /** The call's code never began on this holder. */
  | { kind: "untouched"; why: "refused" | "nobody" }
  /** The call may have begun, and no answer will come. */
  | { kind: "gone" }
  | { kind: "aborted" };

interface CallRequest {
  readonly of: number;
  readonly attempt: number;
  readonly name: string;
  readonly input: Payload;
  readonly signal?: AbortSignal | undefined;
}

interface WaitingCall {
  readonly attempt: number;
  /** The answer must have this capability, which only the called worker knows (C1). */
  readonly capability: string;
  end(how: CallEnd): void;
}

const askEveryMs = 1_000;
const answerMs = 2_000;
/** After this long without an answer from the worker, its lease has ended or the worker is back. */
const silentMs = 120_000;

/** Where calls of a session of this type go. */
type TypedRoute = HeldRoute & { type: string };

export class Caller {
  readonly id: InstanceId;
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #runtime: Runtime;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #waiting = new Map<number, WaitingCall>();
  #listening: Promise<Stoppable> | undefined;
  #calls = 0;

  constructor({ bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Runtime }) {
    this.#bus = bus;
    this.#names = names;
    this.#runtime = runtime;
    this.id = InstanceId.parse(`caller-${token(runtime.random)}`);
    this.#headers = { [laneOwnerHeader]: this.id, [callerHeader]: "1" };
  }

  nextCall(): number {
    return ++this.#calls;
  }

  /**
   * `mayBeGone` is called when the holder does not answer: it resolves to true if the holder's lease has ended.
   */
  async call(route: TypedRoute, request: CallRequest, mayBeGone: () => Promise<boolean>): Promise<CallEnd> {
    await this.#listen();
    const { signal, of, attempt } = request;
    if (signal?.aborted) return { kind: "aborted" };
    let end: (how: CallEnd) => void = () => undefined;
    const ended = new Promise<CallEnd>((resolve) => {
      end = resolve;
    });
    const capability = token(this.#runtime.random, 22);
    this.#waiting.set(of, { attempt, capability, end });
    const abort = () => end({ kind: "aborted" });
    signal?.addEventListener("abort", abort, { once: true });
    try {
      const body = this.#message(route, request, capability);
      void this.#ask(route, body, mayBeGone, () => this.#waiting.has(of)).then(end);
      const how = await ended;
      if (how.kind === "aborted") await this.#cancel(route, of);
      return how;
    } finally {
      this.#waiting.delete(of);
      signal?.removeEventListener("abort", abort);
    }
  }

  async stop(): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    await (await listening)?.stop();
  }

  async #ask(
    route: TypedRoute,
    body: Uint8Array,
    mayBeGone: () => Promise<boolean>,
    stillWaits: () => boolean,
  ): Promise<CallEnd> {
    const { clock } = this.#runtime;
    const subject = this.#names.sessionCalls(route.type, route.workerId, route.sessionId);
    let taken = false;
    let silentSince: number | undefined;
    for (;;) {
      const answer = await this.#offer(subject, body);
      if (!stillWaits()) return { kind: "gone" };
      switch (answer) {
        case "nobody":
          // No worker received the request. If the worker took an earlier one, the call may have begun.
          if (!taken) return { kind: "untouched", why: "nobody" };
          break;
        case "refused":
          return taken ? { kind: "gone" } : { kind: "untouched", why: "refused" };
        case "silent":
          taken = true; // The worker may have taken the request.
          break;
        case "taken":
          taken = true;
          silentSince = undefined;
          break;
        default:
          return { kind: "answered", report: answer };
      }
      if (answer !== "taken") {
        silentSince ??= clock.monotonic();
        if (await mayBeGone()) return { kind: "gone" };
        if (clock.monotonic() - silentSince > silentMs) return { kind: "gone" };
      }
      await new Promise<void>((resolve) => clock.after(askEveryMs, resolve));
      if (!stillWaits()) return { kind: "gone" };
    }
  }

  async #offer(
    subject: string,
    body: Uint8Array,
  ): Promise<"nobody" | "refused" | "silent" | "taken" | ActivityReport> {
    try {
      const reply = await this.#bus.request(subject, body, { timeoutMs: answerMs, headers: this.#headers });
      if (reply.kind === "nobody") return "nobody";
      if (reply.kind === "timeout") return "silent";
      const answer = decode(LaneAnswer, reply.body);
      if (answer.kind === "invalid") return "silent";
      if (answer.value.kind === "done") return answer.value.report;
      return answer.value.kind === "taken" ? "taken" : "refused";
    } catch (error) {
      if (isFault(error, "transient")) return "silent"; // The server cannot be reached.
      throw error;
    }
  }

  #message({ epoch }: HeldRoute, { of, attempt, name, input }: CallRequest, capability: string): Uint8Array {
    const message: LaneCalls = {
      v: 1,
      calls: [
        {
          v: 1,
          kind: "call",
          epoch,
          call: true,
          task: {
            v: 1,
            instanceId: this.id,
            execution: 1,
            of: EventId.parse(of),
            attempt,
            name: Name.parse(name),
            input,
            scheduledAt: this.#runtime.clock.now(),
            timeouts: {},
            reportStart: false,
            traceparent: activeTraceparent(),
            capability,
          },
        },
      ],
    };
    return encode(message);
  }

  /**
   * The holder stops the call at once. If this message is lost, the holder stops the call when the caller's
   * repeats stay away.
   */
  async #cancel({ workerId, sessionId, epoch }: HeldRoute, of: number): Promise<void> {
    const cancel: SessionWork = {
      v: 1,
      kind: "cancel",
      epoch,
      instanceId: this.id,
      execution: 1,
      of: EventId.parse(of),
    };
    const subject = this.#names.sessionWork(workerId, sessionId);
    await this.#bus
      .publish(subject, encode(cancel), { msgId: `cancel-${this.id}-${of}` })
      .catch(() => undefined);
  }

  #listen(): Promise<unknown> {
    this.#listening ??= this.#bus.subscribe(
      this.#names.laneOfOwners(this.id),
      { unconfirmed: true },
      (message) => this.#receive(message),
    );
    return this.#listening;
  }

  #receive({ subject, body }: CoreMessage): void {
    const verb = this.#names.parseLaneOfOwner(subject)?.verb;
    if (verb === "returned") {
      const returned = decode(LaneReturn, body);
      if (returned.kind === "invalid") return;
      const { of, untouched } = returned.value;
      this.#end(of, returned.value, untouched ? { kind: "untouched", why: "refused" } : { kind: "gone" });
      return;
    }
    const report = decode(ActivityReport, body);
    if (report.kind === "invalid") return;
    this.#end(report.value.of, report.value, { kind: "answered", report: report.value });
  }

  /** Ignores answers to an earlier attempt, and answers of workers that were not called. */
  #end(of: number, shown: { attempt: number; capability?: string | undefined }, how: CallEnd): void {
    const waiting = this.#waiting.get(of);
    if (waiting?.attempt === shown.attempt && waiting.capability === shown.capability) waiting.end(how);
  }
}
