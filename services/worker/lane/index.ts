export { JointAnswer } from "./joint-answer.ts";
export { LaneDelivery } from "./lane-delivery.ts";
export { LanePath, type ReplyPath, soonMs } from "./lane-path.ts";
export { Recordings } from "./recordings.ts";
