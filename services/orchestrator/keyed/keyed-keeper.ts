/**
 * Keeps the sessions of the keys of one shard: opens each at the first request, lends it to every instance
 * that uses it, and closes it when it has not been used for its time to live. Calls do not pass through the
 * keeper: a caller that knows the holder calls it directly.
 *
 * KEY-1 A key has one session at a time, wherever requests come from: its id is made of the key, and one
 *    keeper owns it.
 * KEY-2 Only the holder decides that a session is idle, by parking it, and takes no call after that: no call
 *    is cut off.
 * KEY-3 A session that is lost for good, failed or closed is forgotten; the next request opens the key anew.
 * KEY-4 A request with another config than the key's session was opened with is refused; a request without a
 *    config takes the session as it is.
 */
import {
  type Borrower,
  type Failure,
  KeyedInput,
  KeyedSignal,
  type KeyedSpec,
  keyConfigMetadataKey,
  keyedOrchestration,
  keyMetadataKey,
  Name,
  poolSignal,
  sessionPhases,
} from "../../../schemas/index.ts";
import {
  type AnySession,
  type App,
  configConflict,
  defineOrchestration,
  type OrchestrationContext,
} from "../../../shared/definitions/index.ts";
import { Fault, toFailure } from "../../../shared/errors/index.ts";
import {
  closeNow,
  lend,
  phaseOf,
  refuseToLend,
  takeBackFrom,
  whenOver,
} from "../../../shared/replay/index.ts";

/** After this many messages and events the keeper continues as new. */
const roundsPerExecution = 300;
const eventsPerExecution = 2_000;
/** How many ended uses are remembered: a `join` arrives at most seconds after its `leave`. */
const leftRemembered = 500;

interface User {
  readonly borrower: Borrower;
  lent: boolean;
}

interface Kept {
  readonly spec: KeyedSpec;
  readonly users: Map<string, User>;
}

export const keyedKeeper = (app: App) =>
  defineOrchestration(keyedOrchestration, {
    input: KeyedInput,
    // The keeper refuses cancellation: a cancelled instance could never be started again under its id.
    run: (ctx, input) => ctx.uncancellable((own) => new KeyedKeeper(own, app, input).run()),
  });

class KeyedKeeper {
  readonly #ctx: OrchestrationContext;
  readonly #app: App;
  readonly #kept = new Map<string, Kept>();
  readonly #left: Set<string>;
  readonly #over: string[] = [];
  #lendings: number;
  #wake: () => void = () => undefined;

  constructor(ctx: OrchestrationContext, app: App, input: KeyedInput) {
    this.#ctx = ctx;
    this.#app = app;
    this.#left = new Set(input.left);
    this.#lendings = input.lendings;
    for (const { spec, users } of input.sessions) {
      const known = users.map(({ user, borrower, lent }) => [user, { borrower, lent }] as const);
      this.#kept.set(spec.sessionId, { spec, users: new Map(known) });
    }
  }

  async run(): Promise<never> {
    for (const kept of this.#kept.values()) this.#open(kept);
    for (let round = 0; round < roundsPerExecution && this.#ctx.historyLength < eventsPerExecution; round++) {
      for (const sessionId of this.#over.splice(0)) this.#look(sessionId);
      const received = await this.#next();
      if (received === undefined) continue;
      const signal = KeyedSignal.safeParse(received);
      if (signal.success) this.#handle(signal.data);
      else
        this.#ctx.log.warn(
          `ignored a signal that is none of open, close, join, leave: ${signal.error.issues[0]?.message}`,
        );
    }
    return this.#ctx.continueAsNew({
      sessions: [...this.#kept.values()].map(({ spec, users }) => ({
        spec,
        users: [...users].map(([user, { borrower, lent }]) => ({ user, borrower, lent })),
      })),
      left: [...this.#left],
      lendings: this.#lendings,
    });
  }

  /** Resolves with the next signal, or with undefined if a session is over. */
  #next(): Promise<unknown> {
    if (this.#over.length > 0) return Promise.resolve(undefined);
    const changed = new Promise<undefined>((resolve) => {
      this.#wake = () => resolve(undefined);
    });
    return Promise.race([this.#ctx.waitForSignal(poolSignal), changed]);
  }

  #handle(signal: KeyedSignal): void {
    switch (signal.kind) {
      case "open":
        this.#ask(signal.spec);
        return;
      case "close":
        if (this.#kept.delete(signal.sessionId)) closeNow(this.#ctx, signal.sessionId);
        return;
      case "join":
        return this.#join(signal.user, signal.borrower, signal.spec);
      case "leave":
        return this.#leave(signal.user);
    }
  }

  #ask(spec: KeyedSpec): Kept {
    const known = this.#kept.get(spec.sessionId);
    if (known) return known; // KEY-1
    const kept: Kept = { spec, users: new Map() };
    this.#kept.set(spec.sessionId, kept);
    this.#open(kept);
    return kept;
  }

  #open(kept: Kept): void {
    const { sessionId, type, key, config, configDigest, onLost, ttlMs } = kept.spec;
    whenOver(this.#ctx, sessionId, () => this.#isOver(sessionId));
    const opening = this.#ctx.openSession(this.#definition(type), {
      id: sessionId,
      config: config && "json" in config ? config.json : undefined,
      onLost,
      idleTimeout: ttlMs,
      metadata: { [keyMetadataKey]: key, [keyConfigMetadataKey]: configDigest },
    });
    opening.then(
      () => this.#lendToWaiting(kept),
      (error: unknown) => {
        this.#refuseWaiting(kept, toFailure(error));
        this.#isOver(sessionId);
      },
    );
  }

  #isOver(sessionId: string): void {
    this.#over.push(sessionId);
    this.#wake();
  }

  /** Called when a session was seen to be over; the keeper may have opened it again since. */
  #look(sessionId: string): void {
    const kept = this.#kept.get(sessionId);
    const phase = phaseOf(this.#ctx, sessionId)?.kind;
    if (!kept) return;
    if (phase === undefined || sessionPhases[phase].over) {
      this.#kept.delete(sessionId); // KEY-3
      return;
    }
    // KEY-2: instances that use it wake it with their next call.
    if (phase === "parked" && kept.users.size === 0) this.#close(kept);
    else whenOver(this.#ctx, sessionId, () => this.#isOver(sessionId));
  }

  #close({ spec: { sessionId } }: Kept): void {
    this.#kept.delete(sessionId);
    closeNow(this.#ctx, sessionId);
  }

  #join(user: string, borrower: Borrower, spec: KeyedSpec): void {
    if (this.#left.has(user)) return;
    const kept = this.#ask(spec);
    if (kept.users.has(user)) return;
    // KEY-4
    if (spec.configDigest !== "" && kept.spec.configDigest !== spec.configDigest) {
      return this.#refuse(kept.spec, borrower, toFailure(configConflict(spec.type, spec.key)));
    }
    kept.users.set(user, { borrower, lent: false });
    const phase = phaseOf(this.#ctx, spec.sessionId)?.kind;
    if (phase === "active" || phase === "parked") this.#lendToWaiting(kept);
  }

  #leave(user: string): void {
    this.#left.add(user);
    for (const one of this.#left) if (this.#left.size > leftRemembered) this.#left.delete(one);
    for (const kept of this.#kept.values()) {
      const known = kept.users.get(user);
      if (!known) continue;
      const { sessionId } = kept.spec;
      kept.users.delete(user);
      if (known.lent) takeBackFrom(this.#ctx, sessionId, known.borrower);
      if (phaseOf(this.#ctx, sessionId)?.kind === "parked" && kept.users.size === 0) this.#close(kept);
    }
  }

  #lendToWaiting(kept: Kept): void {
    const { sessionId } = kept.spec;
    for (const user of kept.users.values()) {
      if (user.lent) continue;
      user.lent = true;
      lend(this.#ctx, sessionId, this.#lendingTo(sessionId, user.borrower));
    }
  }

  #refuseWaiting(kept: Kept, error: Failure): void {
    for (const { lent, borrower } of kept.users.values()) if (!lent) this.#refuse(kept.spec, borrower, error);
  }

  #refuse({ sessionId, type }: KeyedSpec, to: Borrower, error: Failure): void {
    refuseToLend(this.#ctx, sessionId, this.#lendingTo(sessionId, to), { type, error });
  }

  #lendingTo(sessionId: string, to: Borrower) {
    return { poolId: Name.parse(sessionId), number: ++this.#lendings, to, shared: true as const };
  }

  /** The caller knows the type, so some deployment has it: the keeper waits until this one does (T6). */
  #definition(type: string): AnySession {
    const definition = this.#app.sessions.get(type);
    if (definition) return definition;
    throw new Fault("nondeterminism", {
      code: "unknown_session_type",
      message: `no session type named "${type}" in this deployment`,
      hint: "Deploy the application that uses the key to every orchestrator.",
    });
  }
}
