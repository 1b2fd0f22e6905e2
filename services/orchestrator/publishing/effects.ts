/**
 * Publishes the effects of a commit, in the order that crashes demand. Every effect may be published twice: its
 * message id is made of what the effect is about, so the server drops the repetition (T2, T3). The messages are
 * in the files beside this one: tasks, schedules, sessions, other instances, pools.
 */
import type { Attachment } from "../../../schemas/index.ts";
import { encode } from "../../../shared/bus/index.ts";
import type { Effect, InstanceState } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import { updateAnswer } from "../updates/update-answer.ts";
import { type EffectTarget, type Publishing, removeStored } from "./effect-target.ts";
import { cancelChild, reportToParent, requestEnd, startChild, tellFollower } from "./instance-effects.ts";
import { joinPool, leavePool } from "./pool-effects.ts";
import { removeLocalSchedule, removeSchedule, scheduleDeadline, standForLocal } from "./schedule-effects.ts";
import {
  closeSession,
  lendSession,
  type OfferedClaims,
  offerClaims,
  publishClaim,
  tellGrantees,
  wantSession,
  withdrawClaim,
} from "./session-effects.ts";
import { cancelTask, publishCall, publishTask, sendCalls } from "./task-effects.ts";

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
  const by: Publishing = { deps, state, target, lane };
  // Fast path: most turns ask for one task and nothing else.
  if (effects.length === 1 && only.kind === "task") {
    deps.faultPoints.reach("effects.half_published");
    await publishTask(by, only.task);
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
  const callsSent = sendCalls(by, effects);
  // The last summary is enough: several at once would only compete for the same key.
  const summary = effects.findLast((effect) => effect.kind === "summary");
  const wanted = effects.filter(
    (effect) =>
      (effect.kind !== "summary" || effect === summary) &&
      !(effect.kind === "claim" && refused.has(effect.session.sessionId)),
  );
  const sent = { calls: callsSent, claims: offerClaims(by, wanted) };
  for (const round of [beginnings, endings, unschedulings]) {
    const now = wanted.filter(({ kind }) => roundOf(kind) === round);
    if (now.length === 0) continue;
    if (target.outbox.signal.aborted) return;
    await Promise.all(now.map((effect) => publishOne(by, effect, sent)));
  }
}

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
    case "forget-delayed-start":
    case "forget-local":
      return unschedulings;
    default:
      return beginnings;
  }
}

async function publishOne(
  by: Publishing,
  effect: Effect,
  sent: { calls: ReadonlyMap<string, Promise<boolean>>; claims: OfferedClaims },
): Promise<unknown> {
  const { deps, state, target, lane } = by;
  switch (effect.kind) {
    case "task":
      return publishTask(by, effect.task);
    case "call":
      return publishCall(by, effect, sent.calls);
    case "cancel-task":
      return cancelTask(by, effect);
    case "local":
      return standForLocal(by, effect.task);
    case "forget-local":
      return removeLocalSchedule(by, effect.of);
    case "schedule":
      return scheduleDeadline(by, effect, sent.claims);
    case "unschedule":
      return removeSchedule(by, effect.of);
    case "forget-delayed-start":
      return removeStored(by, deps.names.timersStream, deps.names.delayedStart(state.instanceId));
    case "answer-update": {
      const answer = updateAnswer(effect.updateId, effect.record);
      return deps.bus.send(deps.names.answer(state.instanceId, effect.updateId), encode(answer));
    }
    case "register-session":
      return; // published before everything else
    case "claim":
      return publishClaim(by, effect, sent.claims);
    case "withdraw-claim":
      return withdrawClaim(by, effect.session);
    case "close-session":
      return closeSession(by, effect);
    case "tell-grantees":
      return tellGrantees(by, effect);
    case "lend":
      return lendSession(by, effect);
    case "want-session":
      return wantSession(by, effect);
    case "forget-blobs":
      // Not awaited: nothing refers to these blobs any more, and those that remain are deleted with the
      // session.
      for (const key of effect.keys) void deps.bus.blobs.delete(key).catch(() => undefined);
      return;
    case "start-child":
      return startChild(by, effect);
    case "request-end":
      return requestEnd(by, effect);
    case "tell-follower":
      return tellFollower(by, effect);
    case "cancel-child":
      return cancelChild(by, effect);
    case "report-to-parent":
      return reportToParent(by, effect);
    case "join-pool":
      return joinPool(by, effect);
    case "leave-pool":
      return leavePool(by, effect);
    case "summary":
      return target.summaries.show(state, lane.standsFor !== undefined);
  }
}
