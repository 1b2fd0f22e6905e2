/** What a module gets that is run with `holdfast dev --demo <module>`; it exports `runDemo(stage)`. */
import type { Client } from "./client.ts";

export interface DemoStage {
  readonly client: Client;
  /** Given with `--demo-input`. */
  readonly input: unknown;
  /** Address of the dashboard, where there is one. */
  readonly dashboard: string | undefined;
  /** Serving goes on after the demo, so what it left can be looked at. */
  readonly staysUp: boolean;
  say(text: string): void;
  /** A bar where there is a terminal, a line now and then where there is none. */
  progress(done: number, total: number, label?: string): void;
  /** SIGKILL to a worker of this `dev`; returns the instant. `dev` starts another one in its place. */
  killWorker(workerId: string): Promise<number>;
}

/** What it returns is printed as JSON with `--json`; what it throws ends `--once` with an exit code. */
export type RunDemo = (stage: DemoStage) => Promise<unknown>;
