/**
 * V8 compiles a function well only after it has run for a while, by default long enough that an orchestrator needs
 * some eight thousand instances after each deployment until it is as fast as it gets. With an eighth of that budget it
 * is there after a thousand, and as fast later (bench/README.md). From Node 22 on a tier in between does this job.
 */
import { setFlagsFromString } from "node:v8";

const budget = 16_384;

/** Once a service is up: what runs only while it starts is not worth the effort. */
export function optimiseEarly(): void {
  const [major = 0] = process.versions.node.split(".").map(Number);
  if (major < 22) setFlagsFromString(`--interrupt-budget=${budget}`);
}
