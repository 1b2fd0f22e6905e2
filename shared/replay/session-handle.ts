/** Opening sessions, and the handles code uses them by. */
import { bareSessionType, Name, SessionId, type SessionState } from "../../schemas/index.ts";
import {
  type ActivityOptions,
  type AnyActivity,
  type AnySession,
  type BareSessionHandle,
  type OpenSessionOptions,
  type SessionInfo,
  validate,
} from "../definitions/index.ts";
import { CancelledError, HoldfastError, SessionLostError, SessionUnusable } from "../errors/index.ts";
import { type Context, handled, snapshot } from "./context.ts";
import { deriveId } from "./derive-id.ts";
import { sessionOptions } from "./options.ts";

const isOpen = (session: SessionState): boolean =>
  session.phase.kind !== "closed" && session.phase.kind !== "lost" && session.phase.kind !== "failed";

export function openSession(
  ctx: Context,
  type: AnySession | undefined,
  own: OpenSessionOptions,
  resourceId?: string,
): Promise<BareSessionHandle> {
  const promise = open(ctx, type, own, resourceId);
  promise.catch(handled);
  return promise;
}

async function open(
  ctx: Context,
  type: AnySession | undefined,
  own: OpenSessionOptions,
  resourceId: string | undefined,
): Promise<BareSessionHandle> {
  const { runner, scopeOf: scope } = ctx;
  if (scope.cancelled) throw new CancelledError(scope.reason);
  const typeName = Name.parse(type?.name ?? bareSessionType);
  const id = own.id === undefined ? nextSessionId(ctx, typeName) : SessionId.parse(own.id);
  const known = runner.state.sessions.get(id);
  if (known && known.type !== typeName) {
    throw new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} is open with type "${known.type}", not "${typeName}"`,
    });
  }
  const handle = makeHandle(ctx, id, type);
  if (!(known && isOpen(known)) && !runner.openedNow.has(id)) {
    validate(type?.config, own.config, "invalid_config", `config of session "${typeName}"`);
    const config = snapshot(own.config, `config of session "${typeName}"`);
    const rebuild = snapshot(own.recovery?.rebuild?.input, "input of the rebuild activity");
    const options = { ...sessionOptions(type, own, rebuild.payload), resourceId };
    runner.issue(
      { kind: "session.opened", sessionId: id, type: typeName, config: config.payload, options },
      config.bytes,
    );
    runner.openedNow.set(id, options.lazy);
  }
  const lazy = runner.openedNow.get(id) ?? known?.phase.kind === "parked";
  const phase = runner.openedNow.has(id) ? undefined : known?.phase.kind;
  if (lazy || phase === "active" || phase === "rebuilding") return handle;
  await new Promise<unknown>((resolve, reject) => {
    const before = runner.openings.get(id);
    const leave = scope.join(() => reject(new CancelledError(scope.reason)));
    runner.openings.set(id, {
      scope,
      cancelCommand: undefined,
      resolve: (value) => {
        leave();
        before?.resolve(value);
        resolve(value);
      },
      reject: (error) => {
        leave();
        before?.reject(error);
        reject(error);
      },
    });
  });
  return handle;
}

/**
 * Ids are counted per execution. The n-th session opened without an id is the n-th one carried over by
 * continue-as-new, if that is still open (S11); else it gets an id no earlier execution can have used.
 */
function nextSessionId(ctx: Context, type: string): SessionId {
  const { runner } = ctx;
  const ordinal = ++runner.sessionCount;
  const { instanceId, execution, sessions } = runner.state;
  for (const session of sessions.values()) {
    if (
      session.owner === instanceId &&
      session.sessionId.endsWith(`-s${ordinal}`) &&
      session.type === type &&
      isOpen(session)
    ) {
      return session.sessionId;
    }
  }
  return SessionId.parse(deriveId(instanceId, execution === 1 ? `s${ordinal}` : `${execution}-s${ordinal}`));
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
      new HoldfastError({ code: "invalid_token", message: "not a token made by session.token()" }),
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

function makeHandle(ctx: Context, id: string, type: AnySession | undefined): BareSessionHandle {
  const { runner } = ctx;
  const state = () => runner.state.sessions.get(id);
  const task = (
    name: Parameters<Context["task"]>[0],
    input: unknown,
    options: ActivityOptions,
    call: boolean,
  ) => {
    const dead = whyUnusable(id, state(), runner.closedNow.has(id));
    if (dead) {
      const rejected = Promise.reject(dead);
      rejected.catch(handled);
      return rejected;
    }
    return ctx.task(name, input, options, { kind: "session", sessionId: SessionId.parse(id), call }, 1);
  };
  const handle: BareSessionHandle = {
    id,
    get info() {
      return infoOf(id, type, state());
    },
    run: ((activity: AnyActivity, input: unknown, options: ActivityOptions = {}) =>
      task(activity, input, { ...activity.options, ...options }, false)) as BareSessionHandle["run"],
    async close() {
      const session = state();
      const mine = session === undefined || session.owner === ctx.instanceId;
      const open = session === undefined ? runner.openedNow.has(id) : isOpen(session);
      if (!mine || !open || runner.closedNow.has(id)) return;
      runner.closedNow.add(id);
      runner.dropSession(id);
      runner.issue({ kind: "session.closed", sessionId: SessionId.parse(id) });
    },
    token() {
      const resourceId = infoOf(id, type, state()).resourceId;
      if (!resourceId) {
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

/** Work for a session that is over fails at once: it would only fail later otherwise. */
function whyUnusable(id: string, session: SessionState | undefined, closedNow: boolean): Error | undefined {
  if (closedNow || session?.phase.kind === "closed") {
    return new SessionUnusable({ code: "session_unusable", message: `session ${id} is closed` });
  }
  if (session?.phase.kind === "lost") {
    const { on, reason, detail } = session.phase;
    return new SessionLostError({ sessionId: id, epoch: on?.epoch, workerId: on?.workerId, reason, detail });
  }
  if (session?.phase.kind === "failed") {
    return new SessionUnusable({
      code: "session_unusable",
      message: `session ${id} could not be opened: ${session.phase.error.message}`,
    });
  }
  return undefined;
}

function infoOf(id: string, type: AnySession | undefined, session: SessionState | undefined): SessionInfo {
  const on = session && "on" in session.phase ? session.phase.on : undefined;
  return {
    id,
    type: session?.type ?? type?.name ?? bareSessionType,
    state: session?.phase.kind ?? "opening",
    epoch: on?.epoch,
    attachment: on?.attachment,
    workerId: on?.workerId,
    host: on?.host,
    resourceId: on?.resourceId,
  };
}
