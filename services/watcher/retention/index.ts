export type { RetentionStep } from "./step.ts";
export { Sweep } from "./sweep.ts";
