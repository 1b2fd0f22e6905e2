/**
 * The history of an instance as people see it: one fold for `holdfast watch`, the dashboard and imported
 * files. Loads nothing.
 */
export { foldTimeline } from "./fold.ts";
export type {
  DatedEvent,
  InstanceTimeline,
  Mark,
  PoolUse,
  Received,
  Segment,
  SessionLife,
  Standing,
  Work,
  WorkState,
} from "./timeline.ts";
