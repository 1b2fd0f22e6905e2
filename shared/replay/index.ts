export { deadlineOf, lifeDeadlines, nextDeadline } from "./decide/deadlines.ts";
export type { Accepted, InboxMessage } from "./decide/inbox.ts";
export { apply } from "./fold/apply.ts";
export type { Effect } from "./fold/effects.ts";
export { isOfSecondGeneration, stateOfFirstGeneration } from "./fold/first-generation.ts";
export { suspect } from "./fold/session-effects.ts";
export {
  type InstanceState,
  initialState,
  isEnded,
  isSameParent,
  type OpenTask,
  type UpdateRecord,
} from "./fold/state.ts";
export { requestEnd, spawnFollowed } from "./handles/followed-instances.ts";
export type { Asked } from "./handles/messages/queries.ts";
export type { Considered } from "./handles/messages/updates.ts";
export {
  closeNow,
  lend,
  phaseOf,
  refuseToLend,
  takeBack,
  takeBackFrom,
  whenOver,
} from "./handles/sessions/lending.ts";
export { wantedPool } from "./handles/sessions/pool-handle.ts";
export { hardLimitEvents, softLimitEvents } from "./history-limits.ts";
export { Instance } from "./instance.ts";
export { installGuards } from "./run/guards.ts";
export { replayInOneStretch, watched, watchWindows } from "./run/turn-window.ts";
export type { InstanceHost, Turn } from "./turn-of-instance.ts";
