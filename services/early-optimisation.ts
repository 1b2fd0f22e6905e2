/**
 * V8 optimises a function only after it has run for a while; by default an orchestrator must run about eight
 *    thousand instances after each deployment before it is at full speed. With an eighth of that budget it
 *    needs a thousand, and is as fast later (bench/README.md). From Node 22 on a compiler tier in between
 *    does this job.
 */
import { setFlagsFromString } from "node:v8";

const budget = 16_384;

/** Call this once the service is up: code that runs only during the start is not worth optimising. */
export function optimiseEarly(): void {
  const [major = 0] = process.versions.node.split(".").map(Number);
  if (major < 22) setFlagsFromString(`--interrupt-budget=${budget}`);
}
