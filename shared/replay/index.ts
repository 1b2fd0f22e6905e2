export type { PlacementFacts } from "./accept-session.ts";
export { apply } from "./apply.ts";
export { deadlineOf, nextDeadline } from "./deadlines.ts";
export { deriveId } from "./derive-id.ts";
export type { Effect } from "./effects.ts";
export { installGuards } from "./guards.ts";
export type { Accepted, InboxMessage } from "./inbox.ts";
export { Instance, type InstanceHost, type Turn } from "./instance.ts";
export { suspect } from "./interruptions.ts";
export { lend, takeBack } from "./lending.ts";
export { type PayloadAccess, payloadsOf } from "./payload-access.ts";
export {
  type InstanceState,
  initialState,
  isCommand,
  isEnded,
  isSameParent,
  type OpenChild,
  type OpenTask,
} from "./state.ts";
export { watchWindows } from "./turn-window.ts";
