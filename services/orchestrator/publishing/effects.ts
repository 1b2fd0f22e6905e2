/**
 * Publishes what a commit asked for. Everything may be published twice: message ids are made of what the effect is
 * about, so the server drops the repetition (T2, T3).
 */
import {
  type Attachment,
  ChildReport,
  EventId,
  InstanceId,
  type LaneCalls,
  laneBeforeHeader,
  lenderOrchestration,
  type PoolSignal,
  poolInstance,
  poolOrchestration,
  poolSignal,
  type SessionCall,
  SessionClaim,
  type SessionWork,
  useOf,
  type Wake,
} from "../../../schemas/index.ts";
import { decode, encode, type StoredMessage } from "../../../shared/bus/index.ts";
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
import { callMessage, claimMessage, granteeReport, taskMessage } from "./effect-messages.ts";
import { type Outbox, publishSurely } from "./publish.ts";
import type { SessionRegister } from "./session-register.ts";
import type { Summaries } from "./summaries.ts";
import { tellFollower } from "./tell-follower.ts";

export interface EffectTarget {
  readonly outbox: Outbox;
  readonly register: SessionRegister;
  readonly summaries: Summaries;
  /** Sequences of schedules this owner published: a cancel by sequence is cheaper than by subject. */
  readonly schedules: SparseMap<number, number>;
}

/** Sequences of tasks this process put into their queue: one that is cancelled there need not wait for a worker. */
const queued = new WeakMap<OpenTask, number>();

/** Resolves when everything is stored, or the outbox was told to stop. */
export async function publishEffects(
  deps: EngineDeps,
  state: Readonly<InstanceState>,
  effects: readonly Effect[],
  target: EffectTarget,
  lane: LaneWork,
): Promise<void> {
  const [only] = effects;
  if (only === undefined) return;
  // Most turns ask for one task and nothing else.
  if (effects.length === 1 && only.kind === "task") {
    deps.faultPoints.reach("effects.half_published");
    await publishTask(deps, state, only.task, target.outbox, lane);
    return;
  }
  if (lane.standsFor !== undefined && target.schedules.size === 0 && effects.every(isLocal)) return;
  // A session must be registered before anybody can claim it: the watcher looks its instance up there (S5).
  const sessions = new Set<string>();
  for (const effect of effects) if (effect.kind === "register-session") sessions.add(effect.sessionId);
  const refused = sessions.size > 0 ? await target.register.write(state, sessions) : sessions;
  deps.faultPoints.reach("effects.half_published");
  const publish = publisher(deps, state, target, lane, sendCalls(state, effects, lane));
  // One summary says all: several at once would only fight for its place.
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

/** Most local activities are over by then, and the schedule that stands for one is taken away. */
const localStandInMs = 1000;

const beginnings = 1;
/** What ends something must not overtake what began it, where the code did both in one turn. */
const endings = 2;
/** Only when all the rest is out: while a schedule is there, its firing repairs what was left undone (T3). */
const unschedulings = 3;

const isLocal = ({ kind }: Effect): boolean => kind === "local" || kind === "forget-local";

function roundOf(kind: Effect["kind"]): number {
  switch (kind) {
    case "cancel-child":
    case "request-end":
    case "cancel-task":
    case "leave-pool":
    case "forget-local":
      return endings;
    case "unschedule":
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
  const about = `${instanceId}-${execution}`;
  const toHolder = (on: Attachment, sessionId: string, work: SessionWork, msgId: string) =>
    publishSurely(outbox, names.sessionWork(on.workerId, sessionId), work, { msgId });
  const isCurrent = (task: OpenTask) => state.tasks.get(task.id) === task;
  const scheduleWake = async (of: number, at: number): Promise<void> => {
    const wake: Wake = { v: 1, execution, of };
    const seq = await publishSurely(outbox, names.timer(instanceId, execution, of), wake, {
      // A task's next deadline replaces the one before, and may be the same as an earlier one.
      msgId: `timer-${about}-${of}-${at}-${state.lastEventId}`,
      schedule: { at, target: names.verb(instanceId, "wake") },
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
        const work = callMessage(state, task, task.target, on);
        const msgId = `call-${about}-${task.id}-${task.attempt}-${on.epoch}`;
        if (task.readyAt <= runtime.clock.now()) return toHolder(on, sessionId, work, msgId);
        const waiting = names.sessionRetry(instanceId, execution, task.id, task.attempt);
        const schedule = { at: task.readyAt, target: names.sessionWork(on.workerId, sessionId) };
        return publishSurely(outbox, waiting, work, { msgId, schedule });
      }
      case "cancel-task": {
        const { task, on } = effect;
        // First, so that an attempt which comes due meanwhile is ahead of the notice, never behind it.
        await withdrawRetry(deps, lane, state, task);
        if (task.target.kind === "queue") {
          // All notices of a turn together: the worker that ends one of these tasks must not begin with another.
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
        // The anchor stands for it; where there is none, a schedule does (local-work.ts).
        if (!isCurrent(effect.task) || lane.standsFor !== undefined) return;
        return scheduleWake(id, runtime.clock.now() + localStandInMs);
      }
      case "forget-local": {
        // One that another owner left fires for nothing: to look for it would cost a round trip each time.
        const seq = target.schedules.get(effect.of);
        target.schedules.delete(effect.of);
        return seq === undefined ? undefined : bus.deleteMessage(names.inboxStream, seq);
      }
      case "schedule":
        return scheduleWake(effect.of, effect.at);
      case "unschedule": {
        const seq = target.schedules.get(effect.of);
        target.schedules.delete(effect.of);
        return seq === undefined
          ? removeStored(deps, lane, names.inboxStream, names.timer(instanceId, execution, effect.of))
          : bus.deleteMessage(names.inboxStream, seq);
      }
      case "answer-update":
        return bus.send(
          names.answer(instanceId, effect.updateId),
          encode(updateAnswer(effect.updateId, effect.record)),
        );
      case "register-session":
        return; // done before everything else
      case "claim": {
        const { session, attachment } = effect;
        const phase = state.sessions.get(session.sessionId)?.phase;
        if (phase?.kind !== "opening" || phase.attachment !== attachment) return;
        const claim = claimMessage(state, effect, deps.generation);
        return publishSurely(outbox, names.claim(session.type, session.sessionId), claim, {
          msgId: `claim-${instanceId}-${session.sessionId}-${attachment}`,
        });
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
            publishSurely(
              outbox,
              names.verb(user, "session"),
              { v: 1, sessionId, attachment: Math.max(1, attachments), owner: instanceId, report },
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
        return publishSurely(
          outbox,
          names.verb(lending.to.instanceId, "session"),
          { v: 1, sessionId, attachment: Math.max(1, attachments), owner: instanceId, report },
          { msgId: `lent-${sessionId}-${lending.number}` },
        );
      }
      case "want-session": {
        const { sessionId, attachments, owner } = effect.session;
        const report = { v: 1, sessionId, attachment: Math.max(1, attachments), report: { kind: "wanted" } };
        return publishSurely(outbox, names.verb(owner, "session"), report, {
          msgId: `want-${about}-${state.lastEventId}`,
        });
      }
      case "start-child": {
        const { childId, name, input, id } = effect;
        const headers: Record<string, string> = {};
        if (effect.attached) headers[inboxHeaders.parent] = JSON.stringify({ instanceId, execution, of: id });
        if (effect.follow !== undefined)
          headers[inboxHeaders.follower] = JSON.stringify({ instanceId, signal: effect.follow });
        if (effect.grants.length > 0)
          headers[inboxHeaders.grants] = JSON.stringify(
            deps.generation.allows(2) ? effect.grants : effect.grants.map(stateOfFirstGeneration),
          );
        if ("blob" in input) headers[inboxHeaders.blob] = JSON.stringify(input.blob);
        if (state.traceparent) headers[inboxHeaders.traceparent] = state.traceparent;
        const body = "json" in input ? input.json : undefined;
        return publishSurely(outbox, names.start(childId, name), body, {
          msgId: `child-${about}-${id}`,
          headers,
        });
      }
      case "request-end": {
        const { id, verb, reason } = effect;
        return publishSurely(outbox, names.verb(effect.to, verb), reason === undefined ? {} : { reason }, {
          msgId: `end-${about}-${id}`,
        });
      }
      case "tell-follower":
        return tellFollower(names, outbox, { instanceId, ...effect }, `ended-${about}`);
      case "cancel-child":
        return publishSurely(
          outbox,
          names.verb(effect.childId, "cancel"),
          { reason: `parent ${instanceId} let go` },
          {
            msgId: `cancel-${about}-${effect.childId}`,
            headers: { [inboxHeaders.parent]: JSON.stringify({ instanceId, execution, of: effect.id }) },
          },
        );
      case "report-to-parent": {
        const { parent, result } = effect;
        const report = ChildReport.parse({ v: 1, execution: parent.execution, of: parent.of, result });
        return publishSurely(outbox, names.verb(parent.instanceId, "child"), report, {
          msgId: `done-${about}`,
        });
      }
      case "join-pool": {
        const { poolId, pool, id } = effect;
        const { min, max, lingerMs, sharing } = pool;
        const keeper = poolInstance(poolId);
        const use = { instanceId: InstanceId.parse(instanceId), execution, of: EventId.parse(id) };
        const borrower = sharing === "exclusive" ? use : undefined;
        const signal: PoolSignal = { kind: "join", user: useOf(use), min, max, lingerMs, borrower };
        await publishSurely(
          outbox,
          names.start(keeper, borrower ? lenderOrchestration : poolOrchestration),
          { poolId, pool },
          { msgId: `pool-${about}-${id}` },
        );
        return publishSurely(outbox, names.signal(keeper, poolSignal), signal, {
          msgId: `join-${about}-${id}`,
        });
      }
      case "leave-pool": {
        const { poolId, id } = effect;
        const signal: PoolSignal = { kind: "leave", user: useOf({ instanceId, execution, of: id }) };
        return publishSurely(outbox, names.signal(poolInstance(poolId), poolSignal), signal, {
          msgId: `leave-${about}-${id}`,
        });
      }
      case "summary":
        return target.summaries.show(state, lane.standsFor !== undefined);
    }
  };
}

async function publishTask(
  { names, runtime, workSent }: EngineDeps,
  state: Readonly<InstanceState>,
  task: OpenTask,
  outbox: Outbox,
  lane: LaneWork,
): Promise<void> {
  const { id, attempt, readyAt, target } = task;
  if (state.tasks.get(id) !== task || target.kind !== "queue" || lane.isOut(state, task)) return;
  const message = encode(taskMessage(state, task));
  if (await lane.send(state, [task], message)) return;
  const { instanceId, execution } = state;
  const subject = names.activity(target.queue, task.name);
  const msgId = `task-${instanceId}-${execution}-${id}-${attempt}`;
  const headers = lane.wasLost(task) ? { [laneBeforeHeader]: "1" } : undefined;
  if (readyAt <= runtime.clock.now()) {
    const seq = await publishSurely(outbox, subject, message, { msgId, headers });
    workSent();
    if (seq !== undefined) queued.set(task, seq);
    return;
  }
  const waiting = names.retry(instanceId, execution, id, attempt);
  queued.delete(task);
  await publishSurely(outbox, waiting, message, { msgId, schedule: { at: readyAt, target: subject } });
}

/**
 * The attempt that waits for its time would run although nobody waits for it: no notice is remembered that long. Its
 * subject names the attempt, so nothing else goes with it; of a task that has ended there is no later one.
 */
async function withdrawRetry(
  deps: EngineDeps,
  lane: LaneWork,
  { instanceId, execution }: Readonly<InstanceState>,
  { id, attempt, target }: OpenTask,
): Promise<void> {
  const { names } = deps;
  // Whether its time has come is for the server to say, whose clock is another.
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

/** A session id may be another instance's by now: its claim is not ours to withdraw. */
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
 * Removes what lay on the subject while the partition was still ours. An owner that was paused in between removes
 * nothing that was stored for the same subject since.
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
 * The calls meant for the lane, those of one session in one message: a call must not overtake another. Resolves for
 * each session when it is known whether they were taken; if not, they go by the queue, in the same order.
 */
function sendCalls(
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
    group.calls.push(callMessage(state, task, task.target, on));
  }
  for (const [sessionId, { tasks, calls }] of planned) {
    const message: LaneCalls = { v: 1, calls };
    sent.set(sessionId, lane.send(state, tasks, encode(message)));
  }
  return sent;
}
