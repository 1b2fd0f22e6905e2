export { explain } from "./explain.ts";
export { figuresOf, type SessionFigures } from "./figures.ts";
export { LiveWorkers } from "./live-workers.ts";
export { OfferedClaims } from "./offered-claims.ts";
export { capable, nearEnough, place } from "./placement.ts";
export { placeWithinQuotas, quotaSentence } from "./quota.ts";
export { judge, mayBeHeld, type Suspect } from "./reconcile.ts";
export { isMarkedOver, overMark, ownerIn, recordOf } from "./records.ts";
export { resourceOfHost } from "./resource.ts";
