import type { Client } from "./client/client.ts";

/** The argument of `runDemo(stage)`, which a module run by `holdfast dev --demo <module>` exports. */
export interface DemoStage {
  readonly client: Client;
  /** The value of `--demo-input`. */
  readonly input: unknown;
  /** Address of the dashboard; undefined without a dashboard. */
  readonly dashboard: string | undefined;
  /** True if the services keep running after the demo, so that people can look at the results. */
  readonly staysUp: boolean;
  /** Prints a line. */
  say(text: string): void;
  /** Draws a progress bar on a terminal; prints a line now and then elsewhere. */
  progress(done: number, total: number, label?: string): void;
  /**
   * Sends SIGKILL to a worker of this `dev` and returns the time. `dev` starts another worker in its place.
   */
  killWorker(workerId: string): Promise<number>;
}

/** The returned value is printed as JSON with `--json`; a thrown error ends `--once` with an exit code. */
export type RunDemo = (stage: DemoStage) => Promise<unknown>;
