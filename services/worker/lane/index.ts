export { LaneDelivery } from "./lane-delivery.ts";
export { type LaneDeps, LanePath, type WayBack } from "./lane-path.ts";
export { Recordings } from "./recordings.ts";
