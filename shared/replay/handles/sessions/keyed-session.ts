/**
 * A session that belongs to a key, as the code of an instance sees it: like a session granted to it. Its
 * keeper owns it; calls go straight to the holder. An instance joins a key once, however many handles its
 * code has.
 */

import { EventId, type NewEvent, type PoolSpec, type SessionState } from "../../../../schemas/index.ts";
import {
  type AnySession,
  type BareSessionHandle,
  type KeyOptions,
  keyedSpec,
  keyOptionNames,
  refuseUnknownOptions,
} from "../../../definitions/index.ts";
import { CancelledError, SessionUnusable } from "../../../errors/index.ts";
import type { Context } from "../context.ts";
import { cancellable } from "../promise-combinators.ts";
import { Scope } from "../scope.ts";
import { handled, rejected } from "../snapshot.ts";
import { makeHandle } from "./session-handle.ts";

/** One use of a key by an instance. */
export class KeyUse {
  readonly lent: Promise<string>;
  readonly #waiting: Scope;
  readonly #runner: Context["runner"];
  #left: NewEvent<"pool.left"> | undefined;
  #member: string | undefined;
  #handles = 0;
  over: Error | undefined;

  constructor(ctx: Context, pool: PoolSpec, poolId: SessionState["type"], bytes: number) {
    const { runner } = ctx;
    this.#runner = runner;
    this.#waiting = new Scope(ctx.scopeOf, false);
    const lent = ctx.within(this.#waiting).operation((operation) => {
      const id = runner.issue({ kind: "pool.joined", poolId, pool }, bytes);
      const leave: NewEvent<"pool.left"> = { kind: "pool.left", poolId, of: EventId.parse(id) };
      this.#left = leave;
      return { id, operation: { ...operation, cancelCommand: () => leave } };
    });
    this.lent = lent.then((member) => {
      this.#member = String(member);
      return this.#member;
    });
    this.lent.catch(handled);
  }

  hold(): void {
    this.#handles++;
  }

  /** Returns true if this was the last handle. */
  release(): boolean {
    if (--this.#handles > 0) return false;
    this.leave("it was given back");
    return true;
  }

  leave(why: string): void {
    if (this.over) return;
    this.over = new SessionUnusable({ code: "session_unusable", message: `session by key: ${why}` });
    if (this.#member === undefined) this.#waiting.cancel(why);
    else if (this.#left) this.#runner.returnMember(this.#left, this.#member);
  }
}

export function keyedSession(
  ctx: Context,
  type: AnySession,
  options: KeyOptions,
): Promise<BareSessionHandle> {
  try {
    const { runner, scopeOf: scope } = ctx;
    if (scope.cancelled) throw new CancelledError(scope.reason);
    refuseUnknownOptions(`session("${type.name}")`, options, keyOptionNames);
    const older = runner.needs(2, "sessions by key");
    if (older) throw older;
    return hold(ctx, type, useOf(ctx, type, options));
  } catch (error) {
    return rejected(error);
  }
}

function useOf(ctx: Context, type: AnySession, options: KeyOptions): { id: string; use: KeyUse } {
  const { runner } = ctx;
  const { sessionId, config, key, configDigest, onLost, ttlMs } = keyedSpec(type, options);
  const known = runner.keys.get(sessionId);
  const phase = runner.state.sessions.get(sessionId)?.phase.kind;
  const dead = phase === "lost" || phase === "failed" || phase === "closed";
  if (known && !known.over && !dead) return { id: sessionId, use: known };
  known?.leave("it is over");
  const pool: PoolSpec = {
    type: type.name as PoolSpec["type"],
    config,
    min: 1,
    max: 1,
    lingerMs: ttlMs,
    keyed: { key, configDigest, onLost },
  };
  const bytes = config && "json" in config ? JSON.stringify(config.json).length : 0;
  const use = new KeyUse(ctx, pool, sessionId as string as PoolSpec["type"], bytes);
  runner.keys.set(sessionId, use);
  return { id: sessionId, use };
}

function hold(
  ctx: Context,
  type: AnySession,
  { id, use }: { id: string; use: KeyUse },
): Promise<BareSessionHandle> {
  use.hold();
  let released = false;
  const release = () => {
    if (released) return;
    released = true;
    if (use.release() && ctx.runner.keys.get(id) === use) ctx.runner.keys.delete(id);
  };
  const given = new SessionUnusable({ code: "session_unusable", message: `session ${id} was given back` });
  const promise = use.lent.then(() =>
    makeHandle(ctx, id, type, { over: () => (released ? given : use.over), giveBack: release }),
  );
  promise.catch(handled);
  return cancellable(promise, release, release);
}
