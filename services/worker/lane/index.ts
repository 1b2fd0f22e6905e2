export { JointAnswer } from "./joint-answer.ts";
export { LaneDelivery } from "./lane-delivery.ts";
export { LanePath, soonMs, type WayBack } from "./lane-path.ts";
export { Recordings } from "./recordings.ts";
