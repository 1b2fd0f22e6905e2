/**
 * Calls on sessions that belong to a key. A warm call is one request to the holder and its answer; an
 * orchestrator is asked to open the session only if no holder is known.
 *
 * KEY-5 A call that never began is sent to the next holder, whatever the policy. A call that may have begun
 *    follows the session's `onLost`: `fail` rejects it, the other policies make it again, up to 3 times.
 * KEY-6 An answer counts only for the attempt it was asked for, and each attempt is asked of one epoch: no
 *    answer is stale.
 */
import {
  type ActivityReport,
  type HeldRoute,
  type KeyedRequest,
  KeyedRoute,
  type Payload,
  SessionRecord,
  sessionPhases,
} from "../../../schemas/index.ts";
import {
  Bucket,
  type Bus,
  decode,
  encode,
  headerNames,
  type Payloads,
  type Subjects,
  TypedBucket,
} from "../../bus/index.ts";
import { configConflict } from "../../definitions/index.ts";
import {
  activityErrorFrom,
  CancelledError,
  fromFailure,
  HoldfastError,
  SessionLostError,
  SessionUnusable,
  TimeoutError,
} from "../../errors/index.ts";
import { type Runtime, sleep } from "../../runtime/index.ts";
import { Caller } from "./caller.ts";
import { ErrorReply } from "./error-reply.ts";

export interface KeyedTarget {
  readonly type: string;
  readonly key: string;
  readonly sessionId: string;
  /** Empty string: accept whatever config the key was opened with. */
  readonly configDigest: string;
  readonly open: Omit<Extract<KeyedRequest, { do: "open" }>, "do" | "call" | "input" | "not">;
}

export interface CallOptions {
  /** Monotonic time; Infinity without a deadline. */
  readonly deadline: number;
  readonly signal?: AbortSignal | undefined;
  /** Called before each attempt. */
  readonly onAttempt?:
    | ((where: { caller: string; of: number; attempt: number }) => Promise<void> | void)
    | undefined;
}

/**
 * Asks an orchestrator which worker holds the session of a key; the orchestrator opens the session if no
 * worker does.
 */
type AskRoute = (
  target: KeyedTarget,
  request: Extract<KeyedRequest, { do: "open" }>,
  waitMs: number,
) => Promise<KeyedRoute | "nobody" | "silent">;

export interface KeyedParts {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly runtime: Runtime;
  readonly payloads: Payloads;
  /** Default: a request over NATS. */
  readonly askRoute?: AskRoute;
}

const mostRoutes = 10_000;
const mostAutoRetries = 3;
const askMs = 7_000;
const againMs = 50;
/** How long to try when no orchestrator receives the request, and when one does not answer. */
const patienceMs = { nobody: 10_000, silent: 60_000 };
/**
 * How long the session's record may take to show the loss: a lease, the watcher's grace, and the keeper's
 * turn.
 */
const lossMs = 90_000;
/**
 * If the record still names the holder this long after the holder refused or fell silent, only the call is
 * lost.
 */
const staleMs = 3_000;

export class KeyedCalls {
  readonly #parts: KeyedParts;
  readonly #records: TypedBucket<SessionRecord>;
  readonly #caller: Caller;
  readonly #askRoute: AskRoute;
  /** In order of use, least recent first. */
  readonly #routes = new Map<string, HeldRoute>();

  constructor(parts: KeyedParts) {
    const { bus, names, runtime } = parts;
    this.#parts = parts;
    this.#caller = new Caller(parts);
    this.#askRoute = parts.askRoute ?? ((target, request, waitMs) => this.#request(target, request, waitMs));
    const bucket = new Bucket(bus, names.bucket("sessions"), { random: runtime.random });
    this.#records = new TypedBucket<SessionRecord>(bucket, SessionRecord, runtime.announce);
  }

  stop(): Promise<void> {
    return this.#caller.stop();
  }

  async call(target: KeyedTarget, name: string, input: unknown, options: CallOptions): Promise<unknown> {
    const { payloads } = this.#parts;
    const { signal, deadline } = options;
    const payload = await payloads.wrap(input, this.#caller.id);
    const of = this.#caller.nextCall();
    let strikes = 0;
    let not: HeldRoute | undefined;
    try {
      for (let attempt = 1; ; attempt++) {
        const route = await this.#route(target, { name, input, not, deadline, signal });
        await options.onAttempt?.({ caller: this.#caller.id, of, attempt });
        const request = { of, attempt, name, input: payload, signal };
        const end = await this.#caller.call({ ...route, type: target.type }, request, () =>
          this.#isGone(route),
        );
        switch (end.kind) {
          case "answered":
            return await this.#answer(end.report);
          case "aborted":
            throw whyAborted(signal, name);
          case "untouched":
            this.#forget(target, route);
            if (end.why === "refused") not = route;
            else await this.#pause(deadline, signal, againMs * Math.min(10, attempt));
            break;
          case "gone": {
            this.#forget(target, route);
            const lost = await this.#loss(route, deadline, signal);
            // KEY-5
            if (route.onLost === "fail" || lost.kind === "closed") throw lost.error;
            if (++strikes > mostAutoRetries) throw poisoned(name, strikes, lost.error);
            if (lost.kind === "moved") not = route;
          }
        }
      }
    } finally {
      if (!payloads.isInline(payload))
        void this.#parts.bus.blobs.delete(payload.blob.key).catch(() => undefined);
    }
  }

  async open(target: KeyedTarget, deadline: number, signal?: AbortSignal): Promise<HeldRoute> {
    return this.#route(target, { deadline, signal });
  }

  async #route(
    target: KeyedTarget,
    {
      name,
      input,
      not,
      deadline,
      signal,
    }: {
      name?: string;
      input?: unknown;
      not?: HeldRoute | undefined;
      deadline: number;
      signal?: AbortSignal | undefined;
    },
  ): Promise<HeldRoute> {
    const known = this.#routes.get(target.sessionId);
    if (known) {
      refuseOtherConfig(target, known);
      return known;
    }
    const { clock } = this.#parts.runtime;
    const request: Extract<KeyedRequest, { do: "open" }> = {
      do: "open",
      ...target.open,
      ...(name !== undefined && { call: name }),
      ...(input !== undefined && { input }),
      ...(not && { not: not.epoch }),
    };
    for (let since = clock.monotonic(); ; ) {
      const leftMs = deadline - clock.monotonic();
      if (leftMs <= 0)
        throw tooLate(`session "${target.type}" of key "${target.key}" was not opened in time`);
      if (signal?.aborted) throw whyAborted(signal, "open");
      const route = await this.#askRoute(target, request, Math.min(askMs, leftMs));
      if (route === "nobody" || route === "silent") {
        if (clock.monotonic() - since > patienceMs[route]) throw nobodyServes(target);
        await this.#pause(deadline, signal);
        continue;
      }
      since = clock.monotonic();
      if (route.state === "opening") continue;
      refuseOtherConfig(target, route);
      this.#remember(target, route);
      return route;
    }
  }

  async #request(
    { type, key }: KeyedTarget,
    request: Extract<KeyedRequest, { do: "open" }>,
    waitMs: number,
  ): Promise<KeyedRoute | "nobody" | "silent"> {
    const { bus, names } = this.#parts;
    const headers = { [headerNames.wait]: `${Math.max(1, Math.floor(waitMs - 1_500))}ms` };
    const subject = names.keyed(type, key);
    const reply = await bus.request(subject, encode(request), { timeoutMs: Math.ceil(waitMs), headers });
    if (reply.kind !== "reply") return reply.kind === "nobody" ? "nobody" : "silent";
    const failed = decode(ErrorReply, reply.body);
    if (failed.kind === "ok") throw fromFailure({ retryable: false, ...failed.value.error });
    const route = decode(KeyedRoute, reply.body);
    if (route.kind === "ok") return route.value;
    throw new HoldfastError({ code: "invalid_answer", message: `answer on ${subject}: ${route.message}` });
  }

  /** True if the session's record says that this holder no longer holds it. */
  async #isGone({ sessionId, epoch }: HeldRoute): Promise<boolean> {
    const record = await this.#record(sessionId);
    return record !== undefined && !isHeldUnder(record, epoch);
  }

  /** Waits until the session's keeper has recorded how the holder was lost (S5). */
  async #loss(
    route: HeldRoute,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<{ kind: "lost" | "closed" | "moved"; error: HoldfastError }> {
    const { clock } = this.#parts.runtime;
    const { sessionId, epoch, workerId } = route;
    const since = clock.monotonic();
    for (;;) {
      const record = await this.#record(sessionId);
      const waitedMs = clock.monotonic() - since;
      const lives = record && isHeldUnder(record, epoch);
      if (record && !lives) {
        const lost = record.owners.find((owner) => owner.epoch === epoch)?.end ?? record.lost?.reason;
        if (lost === "closed" || record.phase === "closed")
          return {
            kind: "closed",
            error: new SessionUnusable({
              code: "session_unusable",
              message: `session ${sessionId} was closed`,
            }),
          };
        const { reason = "expired", detail } = record.lost ?? {};
        return { kind: "moved", error: new SessionLostError({ sessionId, epoch, workerId, reason, detail }) };
      }
      // The same worker still holds the session and answers: only the call is lost.
      if (lives && waitedMs > staleMs && (await this.#answers(route)))
        return {
          kind: "lost",
          error: new HoldfastError({
            code: "call_outcome_unknown",
            message: `the holder of session ${sessionId} does not know the call any more: it may have run`,
            details: { sessionId, epoch, workerId },
          }),
        };
      if (waitedMs > lossMs || clock.monotonic() >= deadline)
        throw tooLate(`session ${sessionId} gave no answer`);
      await this.#pause(deadline, signal);
    }
  }

  async #answers({ workerId }: HeldRoute): Promise<boolean> {
    const { bus, names } = this.#parts;
    const question = encode({ v: 1, tasks: [] });
    const reply = await bus.request(names.laneOfHoldings(workerId), question, { timeoutMs: 1_000 });
    return reply.kind === "reply";
  }

  async #record(sessionId: string): Promise<SessionRecord | undefined> {
    return (await this.#records.get(sessionId, { leader: true }))?.value;
  }

  async #answer({ result }: ActivityReport): Promise<unknown> {
    switch (result.kind) {
      case "completed":
        return this.#unwrap(result.output);
      case "failed":
        throw activityErrorFrom(result.error);
      case "state_missing":
        throw new HoldfastError({ code: "session_lost", message: result.message });
      case "started":
        throw new HoldfastError({
          code: "invalid_answer",
          message: "the holder reported a start instead of a result",
        });
    }
  }

  /** A big output was stored for this caller alone. */
  async #unwrap(output: Payload): Promise<unknown> {
    const { payloads, bus } = this.#parts;
    const value = await payloads.unwrap(output);
    if (!payloads.isInline(output)) void bus.blobs.delete(output.blob.key).catch(() => undefined);
    return value;
  }

  async #pause(deadline: number, signal: AbortSignal | undefined, ms = againMs): Promise<void> {
    const { clock } = this.#parts.runtime;
    if (clock.monotonic() >= deadline) throw tooLate("no answer came in time");
    if ((await sleep(clock, ms, signal)) === "aborted") throw whyAborted(signal, "call");
  }

  #remember({ sessionId }: KeyedTarget, route: HeldRoute): void {
    this.#routes.set(sessionId, route);
    for (const oldest of this.#routes.keys()) {
      if (this.#routes.size <= mostRoutes) return;
      this.#routes.delete(oldest);
    }
  }

  #forget({ sessionId }: KeyedTarget, { epoch }: HeldRoute): void {
    if (this.#routes.get(sessionId)?.epoch === epoch) this.#routes.delete(sessionId);
  }
}

const isHeldUnder = ({ phase, epoch }: SessionRecord, wanted: number): boolean =>
  epoch === wanted && sessionPhases[phase].held;

function refuseOtherConfig({ type, key, configDigest }: KeyedTarget, route: HeldRoute): void {
  if (configDigest !== "" && configDigest !== route.configDigest) throw configConflict(type, key);
}

const whyAborted = (signal: AbortSignal | undefined, what: string): Error =>
  signal?.reason instanceof HoldfastError ? signal.reason : new CancelledError(`${what} was given up`);

const tooLate = (message: string): TimeoutError =>
  new TimeoutError({ code: "timeout", message, retryable: true });

const nobodyServes = ({ type, key }: KeyedTarget): HoldfastError =>
  new HoldfastError({
    code: "session_unreachable",
    message: `no orchestrator answers for session "${type}" of key "${key}": none is running, or none of this version`,
    retryable: true,
  });

const poisoned = (name: string, times: number, cause: HoldfastError): HoldfastError =>
  new HoldfastError({
    code: "poisoned",
    message: `${name} was interrupted ${times} times by the loss of its session`,
    cause,
  });
