export { explain } from "./explain.ts";
export { LiveWorkers } from "./live-workers.ts";
export { phaseWord } from "./phase-word.ts";
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
export { holderOf, recordOf } from "./records.ts";
export { shortEpoch } from "./short-epoch.ts";
