/** Opens sessions, and makes the handles by which code uses them. */

import {
  bareSessionType,
  isEngineOrchestration,
  Name,
  SessionId,
  type SessionState,
} from "../../../../schemas/index.ts";
import {
  type ActivityOptions,
  type AnyActivity,
  type AnySession,
  type BareSessionHandle,
  type OpenSessionOptions,
  openSessionOptionNames,
  refuseUnknownOptions,
  requireMetadata,
  type SessionInfo,
  validate,
} from "../../../definitions/index.ts";
import { CancelledError, HoldfastError, SessionUnusable } from "../../../errors/index.ts";
import type { Context } from "../context.ts";
import { deriveId, isDerivedId } from "../derive-id.ts";
import { cancellable } from "../promise-combinators.ts";
import { refuseUnusedRebuild, sessionOptions } from "../recorded-options.ts";
import { requireId } from "../require.ts";
import { handled, rejected, snapshot } from "../snapshot.ts";
import { infoOf, setMetadata, whyUnusable } from "./session-info.ts";

const isOpen = (session: SessionState): boolean =>
  session.phase.kind !== "closed" && session.phase.kind !== "lost" && session.phase.kind !== "failed";

export function openSession(
  ctx: Context,
  type: AnySession | undefined,
  own: OpenSessionOptions,
  resourceId?: string,
): Promise<BareSessionHandle> {
  const opening: Opening = { cancel: handled };
  const promise = open(ctx, type, own, resourceId, opening);
  promise.catch(handled);
  return cancellable(promise, () => opening.cancel());
}

/** How to cancel an opening while no worker holds the session yet. */
interface Opening {
  cancel(): void;
}

async function open(
  ctx: Context,
  type: AnySession | undefined,
  own: OpenSessionOptions,
  resourceId: string | undefined,
  opening: Opening,
): Promise<BareSessionHandle> {
  const { runner, scopeOf: scope } = ctx;
  if (scope.cancelled) throw new CancelledError(scope.reason);
  const typeName = Name.parse(type?.name ?? bareSessionType);
  const id = own.id === undefined ? nextSessionId(ctx, typeName) : requireId(SessionId, "session id", own.id);
  const known = openType(ctx, id);
  if (known !== undefined && known !== typeName) {
    throw new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} is open with type "${known}", not "${typeName}"`,
    });
  }
  if (known === undefined) issueOpened(ctx, id, typeName, type, own, resourceId);
  const now = runner.sessions.now(id);
  const phase = now ? undefined : runner.state.sessions.get(id)?.phase.kind;
  const waits = now?.kind === "opened" ? !now.lazy : phase === "opening" || phase === "claimed";
  if (waits) await held(ctx, id, known === undefined, opening);
  return makeHandle(ctx, id, type);
}

/** The type of a session that is open at this moment; counts what the code did in this round. */
function openType({ runner }: Context, id: string): string | undefined {
  const now = runner.sessions.now(id);
  if (now) return now.kind === "opened" ? now.type : undefined;
  const session = runner.state.sessions.get(id);
  return session && isOpen(session) ? session.type : undefined;
}

function issueOpened(
  { runner }: Context,
  sessionId: SessionId,
  typeName: Name,
  type: AnySession | undefined,
  own: OpenSessionOptions,
  resourceId: string | undefined,
): void {
  validate(type?.config, own.config, "invalid_config", `config of session "${typeName}"`);
  if (!runner.recalls("session.opened")) checkNewOpening(runner.definition.name, own);
  if (runner.followsPromises) refuseUnknownOptions(`openSession("${typeName}")`, own, openSessionOptionNames);
  const config = snapshot(own.config, `config of session "${typeName}"`);
  const rebuild = snapshot(own.recovery?.rebuild?.input, "input of the rebuild activity");
  const options = { ...sessionOptions(type, own, rebuild.payload), resourceId };
  const recorded = runner.issueOrRecall<"session.opened">(
    { kind: "session.opened", sessionId, type: typeName, config: config.payload, options },
    config.bytes + rebuild.bytes,
  );
  runner.sessions.openedNow(sessionId, typeName, options.lazy);
  runner.sessions.metadataNow(sessionId, recorded.options.metadata);
}

/**
 * Checks that older versions did not make, so a recorded opening is not checked again. The engine's own instances may
 * set metadata with the engine's prefix.
 */
function checkNewOpening(orchestration: string, own: OpenSessionOptions): void {
  refuseUnusedRebuild(own);
  refuseUnknownOptions("recovery", own.recovery, { rebuild: true, maxAutoRetries: true });
  const placementNames = { tags: true, resources: true, buildId: true, affinityKey: true };
  refuseUnknownOptions("placement", own.placement, placementNames);
  if (own.metadata !== undefined && !isEngineOrchestration(orchestration)) requireMetadata({}, own.metadata);
}

/**
 * Resolves when a worker holds the session. If the wait is cancelled, its opener closes the session, because
 * no code has its handle.
 */
function held({ runner, scopeOf: scope }: Context, id: SessionId, opened: boolean, opening: Opening) {
  return new Promise<void>((resolve, reject) => {
    const settle = () => {
      opening.cancel = handled;
      scope.leave(member);
    };
    const member = { cancel: () => opening.cancel() };
    scope.join(member);
    const leave = runner.sessions.wait(id, {
      resolve: () => {
        settle();
        resolve();
      },
      reject: (error) => {
        settle();
        reject(error);
      },
    });
    opening.cancel = () => {
      settle();
      if (leave() === "alone" && opened) runner.closeSession(id);
      reject(new CancelledError(scope.reason));
    };
  });
}

/**
 * Ids are counted per execution. The n-th session opened without an id is the n-th one carried over by
 * continue-as-new, if that is still open (S11); else it gets an id no earlier execution can have used.
 */
function nextSessionId({ runner }: Context, type: string): SessionId {
  const ordinal = `s${++runner.sessionCount}`;
  const { instanceId, execution, sessions } = runner.state;
  for (const session of sessions.values()) {
    const carried =
      session.owner === instanceId &&
      session.type === type &&
      isDerivedId(session.sessionId, instanceId, ordinal);
    if (carried && isOpen(session) && runner.sessions.now(session.sessionId) === undefined)
      return session.sessionId;
  }
  return SessionId.parse(deriveId(instanceId, execution, ordinal));
}

export function recreateSession(
  ctx: Context,
  token: string,
  type: AnySession | undefined,
  own: OpenSessionOptions,
): Promise<BareSessionHandle> {
  let resourceId: unknown;
  try {
    resourceId = JSON.parse(Buffer.from(token, "base64url").toString("utf8")).resourceId;
  } catch {
    resourceId = undefined;
  }
  if (typeof resourceId !== "string") {
    return Promise.reject(
      new HoldfastError({ code: "invalid_token", message: "the token is not one made by session.token()" }),
    );
  }
  return openSession(ctx, type, own, resourceId);
}

export function grantedSession(ctx: Context, id: string, type: AnySession | undefined): BareSessionHandle {
  const session = ctx.runner.state.sessions.get(id);
  if (!session || session.owner === ctx.instanceId) {
    throw new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} was not granted to instance ${ctx.instanceId}`,
    });
  }
  return makeHandle(ctx, id, type);
}

/** How the code gives back a session that it borrowed, and the error for its use after that. */
interface BorrowedSession {
  over(): Error | undefined;
  giveBack(): void;
}

export function makeHandle(
  ctx: Context,
  id: string,
  type: AnySession | undefined,
  loan?: BorrowedSession,
): BareSessionHandle {
  const { runner } = ctx;
  const task = (
    name: Parameters<Context["task"]>[0],
    input: unknown,
    options: ActivityOptions,
    call: boolean,
  ) => {
    const dead = loan?.over() ?? whyUnusable(ctx, id);
    if (dead) return rejected(dead);
    return ctx.task(name, input, options, { kind: "session", sessionId: SessionId.parse(id), call }, 1);
  };
  const handle: BareSessionHandle = {
    id,
    get info(): SessionInfo {
      const info = infoOf(ctx, id, type);
      return loan?.over() ? { ...info, state: "closed" } : info;
    },
    run: ((activity: AnyActivity, input: unknown, options: ActivityOptions = {}) =>
      task(activity, input, { ...activity.options, ...options }, false)) as BareSessionHandle["run"],
    async close() {
      if (loan) return loan.giveBack();
      const session = runner.state.sessions.get(id);
      const mine = session === undefined || session.owner === ctx.instanceId;
      if (mine && openType(ctx, id) !== undefined) runner.closeSession(SessionId.parse(id));
    },
    setMetadata: (change) => setMetadata(ctx, id, change, loan),
    token() {
      const { resourceId } = handle.info;
      if (!resourceId || loan?.over()) {
        throw new SessionUnusable({
          code: "session_unusable",
          message: `session ${id} has no holder to name a resource`,
        });
      }
      return Buffer.from(JSON.stringify({ resourceId })).toString("base64url");
    },
    async [Symbol.asyncDispose]() {
      await handle.close();
    },
  };
  const calls = Object.entries(type?.calls ?? {}).map(([name, call]) => {
    const definition = { name, input: call.input, output: call.output };
    return [name, (input: unknown, options: ActivityOptions = {}) => task(definition, input, options, true)];
  });
  return Object.assign(handle, Object.fromEntries(calls));
}
