import type { Workload } from "../workload.ts";
import { w1 } from "./w1-sequence.ts";
import { w2 } from "./w2-parallel.ts";
import { w3 } from "./w3-instances.ts";
import { w5 } from "./w5-signal.ts";

/** In the order they run. */
export const workloads: readonly Workload[] = [w1, w2, w5, w3];
