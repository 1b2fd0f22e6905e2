export { LaneDelivery } from "./lane-delivery.ts";
export { type LaneDeps, LanePath } from "./lane-path.ts";
export { Recordings } from "./recordings.ts";
