export { explain } from "./explain.ts";
export { figuresOf, type SessionFigures } from "./figures.ts";
export { LiveWorkers } from "./live-workers.ts";
export {
  capable,
  hasRoom,
  type NoPlace,
  nearEnough,
  type Placement,
  type PlacementClaim,
  type PlacementOptions,
  place,
} from "./placement.ts";
export { placeWithinQuotas, type QuotaUse, quotaSentence } from "./quota.ts";
export { judge, mayBeHeld, type Suspect, type Verdict } from "./reconcile.ts";
export { isMarkedOver, overMark, ownerIn, recordOf } from "./records.ts";
export { resourceOfHost } from "./resource.ts";
