export { Sweep } from "./sweep.ts";
