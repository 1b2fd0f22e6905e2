/**
 * Publishes the effects of a commit. Every effect may be published twice: its message id is made of what the
 * effect is about, so the server drops the repetition (T2, T3).
 */
import {
  type Attachment,
  type Borrower,
  ChildReport,
  EventId,
  flowOrchestration,
  flowSignal,
  InstanceId,
  type KeyedSignal,
  type KeyedSpec,
  keeperOf,
  keyedOrchestration,
  keyedSpecOf,
  type LaneCalls,
  laneBeforeHeader,
  leftOutOrchestration,
  lenderOrchestration,
  type PoolSignal,
  poolOrchestration,
  poolSignal,
  type SessionCall,
  SessionClaim,
  type SessionWork,
  useOf,
  type Wake,
} from "../../../schemas/index.ts";
import { decode, encode, type StoredMessage, type Subjects } from "../../../shared/bus/index.ts";
import {
  type Effect,
  type InstanceState,
  type OpenTask,
  stateOfFirstGeneration,
} from "../../../shared/replay/index.ts";
import type { SparseMap } from "../../../shared/runtime/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import { inboxHeaders } from "../parse-inbox.ts";
import { updateAnswer } from "../updates/update-answer.ts";
import { askAtOnce } from "./ask-at-once.ts";
import { callMessage, claimMessage, engineReport, granteeReport, taskMessage } from "./effect-messages.ts";
import { type Outbox, publishEffect } from "./publish.ts";
import type { SessionRegister } from "./session-register.ts";
import type { Summaries } from "./summaries.ts";
import { tellFollower } from "./tell-follower.ts";

export interface EffectTarget {
  readonly outbox: Outbox;
  readonly register: SessionRegister;
  readonly summaries: Summaries;
  /** Sequences of schedules that this owner published: to cancel by sequence is cheaper than by subject. */
  readonly schedules: SparseMap<number, number>;
}

/**
 * Sequences of tasks that this process put into their queue: a cancelled task is deleted there without
 * waiting for a worker.
 */
const queued = new WeakMap<OpenTask, number>();

/** Resolves when everything is stored, or the outbox's signal is aborted. */
export async function publishEffects(
  deps: EngineDeps,
  state: Readonly<InstanceState>,
  effects: readonly Effect[],
  target: EffectTarget,
  lane: LaneWork,
): Promise<void> {
  const [only] = effects;
  if (only === undefined) return;
  // Fast path: most turns ask for one task and nothing else.
  if (effects.length === 1 && only.kind === "task") {
    deps.faultPoints.reach("effects.half_published");
    await publishTask(deps, state, only.task, target.outbox, lane);
    return;
  }
  if (lane.standsFor !== undefined && target.schedules.size === 0 && effects.every(isLocal)) return;
  // A session must be registered before a worker can claim it: the watcher looks up its instance there (S5).
  const sessions = new Map<string, Attachment | undefined>();
  for (const effect of effects)
    if (effect.kind === "register-session")
      sessions.set(effect.sessionId, effect.held ?? sessions.get(effect.sessionId));
  const refused = sessions.size > 0 ? await target.register.write(state, sessions) : sessions;
  deps.faultPoints.reach("effects.half_published");
  const publish = publisher(deps, state, target, lane, sendCalls(deps, state, effects, lane));
  // The last summary is enough: several at once would only compete for the same key.
  const summary = effects.findLast((effect) => effect.kind === "summary");
  const wanted = effects.filter(
    (effect) =>
      (effect.kind !== "summary" || effect === summary) &&
      !(effect.kind === "claim" && refused.has(effect.session.sessionId)),
  );
  for (const round of [beginnings, endings, unschedulings]) {
    const now = wanted.filter(({ kind }) => roundOf(kind) === round);
    if (now.length === 0) continue;
    if (target.outbox.signal.aborted) return;
    await Promise.all(now.map(publish));
  }
}

/** Most local activities are over before this time, and the schedule that stands for one is then removed. */
const localStandInMs = 1000;

const beginnings = 1;
/**
 * An effect that ends something must not overtake the one that began it, if the code did both in one turn.
 */
const endings = 2;
/**
 * Published after all the rest: while a schedule exists, its firing repairs what was left unpublished (T3).
 */
const unschedulings = 3;

const isLocal = ({ kind }: Effect): boolean => kind === "local" || kind === "forget-local";

function roundOf(kind: Effect["kind"]): number {
  switch (kind) {
    case "cancel-child":
    case "request-end":
    case "cancel-task":
    case "leave-pool":
    case "forget-blobs":
      return endings;
    case "unschedule":
    case "forget-local":
      return unschedulings;
    default:
      return beginnings;
  }
}

function publisher(
  deps: EngineDeps,
  state: Readonly<InstanceState>,
  target: EffectTarget,
  lane: LaneWork,
  callsSent: ReadonlyMap<string, Promise<boolean>>,
) {
  const { bus, names, runtime } = deps;
  const { instanceId, execution } = state;
  const { outbox } = target;
  // Large values are stored as the receiver's before they are sent: the receiver may read them when this
  // instance is gone.
  const about = `${instanceId}-${execution}`;
  const toHolder = (on: Attachment, sessionId: string, work: SessionWork, msgId: string) =>
    publishEffect(outbox, names.sessionWork(on.workerId, sessionId), work, { msgId });
  const isCurrent = (task: OpenTask) => state.tasks.get(task.id) === task;
  const scheduleWake = async (of: number, at: number): Promise<void> => {
    const wake: Wake = { v: 1, execution, of };
    const seq = await publishEffect(outbox, names.timer(instanceId, execution, of), wake, {
      // A task's next deadline replaces the one before, and may be equal to an earlier one.
      msgId: `timer-${about}-${of}-${at}-${state.lastEventId}`,
      schedule: { at, target: names.fired(names.verb(instanceId, "wake")), keptMs: names.firedKeptMs },
    });
    if (seq !== undefined) target.schedules.set(of, seq);
  };

  return async (effect: Effect): Promise<unknown> => {
    switch (effect.kind) {
      case "task":
        return publishTask(deps, state, effect.task, outbox, lane);
      case "call": {
        const { task, on } = effect;
        if (!isCurrent(task) || task.target.kind !== "session" || task.sentEpoch !== on.epoch) return;
        const { sessionId } = task.target;
        await callsSent.get(sessionId);
        if (lane.isOut(state, task)) return;
        const work = callMessage(state, task, task.target, on, deps.capabilities);
        const msgId = `call-${about}-${task.id}-${task.attempt}-${on.epoch}`;
        if (task.readyAt <= runtime.clock.now()) return toHolder(on, sessionId, work, msgId);
        const waiting = names.sessionRetry(instanceId, execution, task.id, task.attempt);
        const schedule = { at: task.readyAt, target: names.sessionWork(on.workerId, sessionId) };
        return publishEffect(outbox, waiting, work, { msgId, schedule });
      }
      case "cancel-task": {
        const { task, on } = effect;
        // Before the notice, so that an attempt that comes due meanwhile is sent before the notice, never
        // after it.
        await withdrawRetry(deps, lane, state, task);
        if (task.target.kind === "queue") {
          // All notices of a turn are sent together: a worker that ends one of these tasks must not begin
          // another of them.
          bus.send(names.cancels, encode({ instanceId, execution, of: task.id }));
          const seq = queued.get(task);
          return seq === undefined ? undefined : bus.deleteMessage(names.activitiesStream, seq);
        }
        if (!on || task.target.kind !== "session") return;
        const cancel: SessionWork = {
          v: 1,
          kind: "cancel",
          epoch: on.epoch,
          instanceId: InstanceId.parse(instanceId),
          execution,
          of: EventId.parse(task.id),
        };
        return toHolder(on, task.target.sessionId, cancel, `cancel-${about}-${task.id}`);
      }
      case "local": {
        const { id } = effect.task;
        // The anchor stands for the activity; without an anchor, a schedule does (local-work.ts).
        if (!isCurrent(effect.task) || lane.standsFor !== undefined) return;
        return scheduleWake(id, runtime.clock.now() + localStandInMs);
      }
      case "forget-local": {
        // A schedule that another owner left fires without effect: to look for it would cost a round trip
        // each time.
        const seq = target.schedules.get(effect.of);
        target.schedules.delete(effect.of);
        return seq === undefined ? undefined : bus.deleteMessage(names.timersStream, seq);
      }
      case "schedule":
        return scheduleWake(effect.of, effect.at);
      case "unschedule": {
        const seq = target.schedules.get(effect.of);
        target.schedules.delete(effect.of);
        return seq === undefined
          ? removeStored(deps, lane, names.timersStream, names.timer(instanceId, execution, effect.of))
          : bus.deleteMessage(names.timersStream, seq);
      }
      case "answer-update":
        return bus.send(
          names.answer(instanceId, effect.updateId),
          encode(updateAnswer(effect.updateId, effect.record)),
        );
      case "register-session":
        return; // published before everything else
      case "claim": {
        const { session, attachment } = effect;
        const phase = state.sessions.get(session.sessionId)?.phase;
        if (phase?.kind !== "opening" || phase.attachment !== attachment) return;
        const claim = claimMessage(state, effect, deps);
        await publishEffect(outbox, names.claim(session.type, session.sessionId), claim, {
          msgId: `claim-${instanceId}-${session.sessionId}-${attachment}`,
        });
        return askAtOnce(deps, claim);
      }
      case "withdraw-claim":
        return withdrawClaim(deps, lane, instanceId, effect.session);
      case "close-session": {
        const { session, on, reason } = effect;
        return toHolder(
          on,
          session.sessionId,
          { v: 1, kind: "close", epoch: on.epoch, reason },
          `close-${session.sessionId}-${on.epoch}`,
        );
      }
      case "tell-grantees": {
        const report = granteeReport(effect);
        if (!report) return;
        const { sessionId, attachments } = effect.session;
        return Promise.all(
          effect.to.map((user) =>
            publishEffect(
              outbox,
              names.verb(user, "session"),
              engineReport(deps.capabilities, user, {
                ...{ sessionId, attachment: Math.max(1, attachments), owner: instanceId, report },
              }),
              { msgId: `grant-${sessionId}-${attachments}-${report.kind}-${user}` },
            ),
          ),
        );
      }
      case "lend": {
        const { session } = effect;
        const { sessionId, attachments, lending } = session;
        const lent = deps.generation.allows(2) ? session : stateOfFirstGeneration(session);
        const report = { kind: "lent", session: lent };
        const { instanceId: to } = lending.to;
        return publishEffect(
          outbox,
          names.verb(to, "session"),
          engineReport(deps.capabilities, to, {
            ...{ sessionId, attachment: Math.max(1, attachments), owner: instanceId, report },
          }),
          { msgId: `lent-${sessionId}-${lending.number}` },
        );
      }
      case "forget-blobs":
        // Not waited for: nothing refers to them any more, and what stays goes with the session.
        for (const key of effect.keys) void bus.blobs.delete(key).catch(() => undefined);
        return;
      case "want-session": {
        const { sessionId, attachments, owner } = effect.session;
        const attachment = Math.max(1, attachments);
        const report = { sessionId, attachment, report: { kind: "wanted" } };
        const body = engineReport(deps.capabilities, owner, report);
        return publishEffect(outbox, names.verb(owner, "session"), body, {
          msgId: `want-${about}-${state.lastEventId}`,
        });
      }
      case "start-child": {
        const { childId, name, id } = effect;
        const ofKeeper = state.name === flowOrchestration;
        if (ofKeeper && name !== leftOutOrchestration) {
          if (await deps.keepers.handOver(instanceId, childId, effect.follow !== undefined)) return;
        }
        const input = await deps.payloads.adopt(effect.input, childId);
        const headers: Record<string, string> = {};
        if (effect.attached) headers[inboxHeaders.parent] = JSON.stringify({ instanceId, execution, of: id });
        if (effect.follow !== undefined)
          headers[inboxHeaders.follower] = JSON.stringify({ instanceId, signal: effect.follow });
        if (effect.grants.length > 0)
          headers[inboxHeaders.grants] = JSON.stringify(
            deps.generation.allows(2) ? effect.grants : effect.grants.map(stateOfFirstGeneration),
          );
        const capability = deps.capabilities.ofStart(childId, {
          parent: effect.attached ? { instanceId, execution, of: id } : undefined,
          follower: effect.follow === undefined ? undefined : { instanceId, signal: effect.follow },
          granted: effect.grants,
        });
        if (capability !== undefined) headers[inboxHeaders.capability] = capability;
        if ("blob" in input) headers[inboxHeaders.blob] = JSON.stringify(input.blob);
        if (state.traceparent) headers[inboxHeaders.traceparent] = state.traceparent;
        const body = "json" in input ? input.json : undefined;
        await publishEffect(outbox, names.start(childId, name), body, {
          msgId: `child-${about}-${id}`,
          headers,
        });
        if (ofKeeper && name === leftOutOrchestration) deps.keepers.leftOut(instanceId, childId);
        return;
      }
      case "request-end": {
        const { id, verb, reason } = effect;
        return publishEffect(outbox, names.verb(effect.to, verb), reason === undefined ? {} : { reason }, {
          msgId: `end-${about}-${id}`,
        });
      }
      case "tell-follower": {
        const { follower, status } = effect;
        const messageId = `ended-${about}`;
        if (follower.signal === flowSignal) {
          const end = { instanceId, status, messageId };
          if (await deps.keepers.ended(follower.instanceId, end, outbox.signal)) return;
        }
        return tellFollower(names, outbox, { instanceId, ...effect }, messageId);
      }
      case "cancel-child":
        return publishEffect(
          outbox,
          names.verb(effect.childId, "cancel"),
          { reason: `parent ${instanceId} let go` },
          {
            msgId: `cancel-${about}-${effect.childId}`,
            headers: { [inboxHeaders.parent]: JSON.stringify({ instanceId, execution, of: effect.id }) },
          },
        );
      case "report-to-parent": {
        const { parent } = effect;
        const result =
          effect.result.kind === "completed"
            ? { ...effect.result, output: await deps.payloads.adopt(effect.result.output, parent.instanceId) }
            : effect.result;
        const report = ChildReport.parse({ v: 1, execution: parent.execution, of: parent.of, result });
        return publishEffect(outbox, names.verb(parent.instanceId, "child"), report, {
          msgId: `done-${about}`,
        });
      }
      case "join-pool": {
        const { poolId, pool, id } = effect;
        const { min, max, lingerMs, sharing } = pool;
        const keeper = keeperOf(poolId);
        const use = { instanceId: InstanceId.parse(instanceId), execution, of: EventId.parse(id) };
        if (pool.keyed) return joinKey(outbox, names, use, keyedSpecOf(poolId, pool));
        const borrower = sharing === "exclusive" ? use : undefined;
        const signal: PoolSignal = { kind: "join", user: useOf(use), min, max, lingerMs, borrower };
        await publishEffect(
          outbox,
          names.start(keeper, borrower ? lenderOrchestration : poolOrchestration),
          { poolId, pool },
          { msgId: `pool-${about}-${id}` },
        );
        return publishEffect(outbox, names.signal(keeper, poolSignal), signal, {
          msgId: `join-${about}-${id}`,
        });
      }
      case "leave-pool": {
        const { poolId, id } = effect;
        const signal: PoolSignal = { kind: "leave", user: useOf({ instanceId, execution, of: id }) };
        return publishEffect(outbox, names.signal(keeperOf(poolId), poolSignal), signal, {
          msgId: `leave-${about}-${id}`,
        });
      }
      case "summary":
        return target.summaries.show(state, lane.standsFor !== undefined);
    }
  };
}

async function joinKey(
  outbox: Outbox,
  names: Subjects,
  borrower: Borrower,
  spec: KeyedSpec,
): Promise<unknown> {
  const keeper = keeperOf(spec.sessionId);
  const user = useOf(borrower);
  await publishEffect(outbox, names.start(keeper, keyedOrchestration), {}, { msgId: `start-${keeper}` });
  const signal: KeyedSignal = { kind: "join", user, borrower, spec };
  return publishEffect(outbox, names.signal(keeper, poolSignal), signal, { msgId: `join-${user}` });
}

async function publishTask(
  { names, runtime, workSent, capabilities }: EngineDeps,
  state: Readonly<InstanceState>,
  task: OpenTask,
  outbox: Outbox,
  lane: LaneWork,
): Promise<void> {
  const { id, attempt, readyAt, target } = task;
  if (state.tasks.get(id) !== task || target.kind !== "queue" || lane.isOut(state, task)) return;
  const message = encode(taskMessage(state, task, capabilities));
  if (await lane.send(state, task, message)) return;
  const { instanceId, execution } = state;
  const subject = names.activity(target.queue, task.name);
  const msgId = `task-${instanceId}-${execution}-${id}-${attempt}`;
  const headers = lane.wasLost(task) ? { [laneBeforeHeader]: "1" } : undefined;
  if (readyAt <= runtime.clock.now()) {
    const seq = await publishEffect(outbox, subject, message, { msgId, headers });
    workSent();
    if (seq !== undefined) queued.set(task, seq);
    return;
  }
  const waiting = names.retry(instanceId, execution, id, attempt);
  queued.delete(task);
  await publishEffect(outbox, waiting, message, { msgId, schedule: { at: readyAt, target: subject } });
}

/**
 * Removes the stored message of the next attempt. Otherwise that attempt would run when it is due although
 * the instance no longer waits for it: workers do not remember cancel notices that long. The subject names
 * the attempt, so nothing else is removed; a task that has ended has no later attempt.
 */
async function withdrawRetry(
  deps: EngineDeps,
  lane: LaneWork,
  { instanceId, execution }: Readonly<InstanceState>,
  { id, attempt, target }: OpenTask,
): Promise<void> {
  const { names } = deps;
  // Only the server, by its own clock, knows whether the attempt is due.
  if (attempt === 1 || target.kind === "local") return;
  if (target.kind === "queue")
    await removeStored(deps, lane, names.activitiesStream, names.retry(instanceId, execution, id, attempt));
  else
    await removeStored(
      deps,
      lane,
      names.sessionsStream,
      names.sessionRetry(instanceId, execution, id, attempt),
    );
}

/** The session id may belong to another instance by now, whose claim must stay. */
async function withdrawClaim(
  deps: EngineDeps,
  lane: LaneWork,
  instanceId: string,
  { type, sessionId }: { type: string; sessionId: string },
): Promise<void> {
  const { names } = deps;
  await removeStored(deps, lane, names.claimsStream, names.claim(type, sessionId), ({ body }) => {
    const claim = decode(SessionClaim, body);
    return claim.kind === "ok" && claim.value.instanceId === instanceId;
  });
}

/**
 * Removes what was on the subject while this orchestrator owned the partition. An owner that was paused in
 * between removes nothing that was stored on the same subject since.
 */
async function removeStored(
  { bus }: EngineDeps,
  lane: LaneWork,
  stream: string,
  subject: string,
  isOurs: (message: StoredMessage) => boolean = () => true,
): Promise<void> {
  const last = await bus.last(stream, subject, { leader: true });
  if (last && lane.isHeld && isOurs(last)) await bus.purge(stream, subject, last.seq);
}

/**
 * Sends the calls planned for the lane, all calls of one session in one message: a call must not overtake
 * another. Resolves for each session when it is known whether a worker took them; if not, they go by the
 * queue, in the same order.
 */
function sendCalls(
  deps: EngineDeps,
  state: Readonly<InstanceState>,
  effects: readonly Effect[],
  lane: LaneWork,
): ReadonlyMap<string, Promise<boolean>> {
  const sent = new Map<string, Promise<boolean>>();
  const planned = new Map<string, { tasks: OpenTask[]; calls: SessionCall[] }>();
  for (const effect of effects) {
    if (effect.kind !== "call" || !lane.isPlanned(effect.task)) continue;
    const { task, on } = effect;
    if (task.target.kind !== "session" || task.sentEpoch !== on.epoch) continue;
    const { sessionId } = task.target;
    const group = planned.get(sessionId) ?? { tasks: [], calls: [] };
    planned.set(sessionId, group);
    group.tasks.push(task);
    group.calls.push(callMessage(state, task, task.target, on, deps.capabilities));
  }
  for (const [sessionId, { tasks, calls }] of planned) {
    const message: LaneCalls = { v: 1, calls };
    sent.set(sessionId, lane.sendCalls(state, tasks, encode(message)));
  }
  return sent;
}
