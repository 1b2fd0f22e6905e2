/** A workload, and the servers, services and options it runs with. */
import type { Floor } from "./floor/floor.ts";
import type { BenchOptions, Layout } from "./options.ts";
import type { Line } from "./report.ts";
import type { Rig } from "./rig.ts";

export interface Bench {
  readonly options: BenchOptions;
  readonly layout: Layout;
  /** The server, one orchestrator and one worker, shared by all workloads of this layout that need no more. */
  rig(): Promise<Rig>;
  /** The floor on that same server. */
  floor(): Promise<Floor>;
  /** Another server, with two workers that may hold many sessions, and a watcher. */
  sessionRig(): Promise<Rig>;
  /** The floor there, with as many workers. */
  sessionFloor(): Promise<Floor>;
  /** One of two sizes. */
  size(full: number, quick: number): number;
  emit(figures: Omit<Line, "workload" | "layout">): void;
}

export interface Workload {
  readonly name: string;
  readonly what: string;
  /** The history layouts to measure; `one` if the layout makes no difference. */
  readonly layouts: "both" | "both-unless-quick" | "one";
  run(bench: Bench): Promise<void>;
}
