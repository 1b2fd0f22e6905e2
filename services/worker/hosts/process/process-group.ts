import type { ChildProcess } from "node:child_process";
import { type Clock, within } from "../../../../shared/runtime/index.ts";
import type { Exit } from "../isolated/carrier.ts";

/** A child and all processes it started, in a process group of their own: they end together (HOST-3). */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  readonly exited: Promise<Exit>;

  /** `child` was started with `detached`, which makes it the leader of a group. */
  constructor(child: ChildProcess, clock: Clock) {
    this.#child = child;
    this.#clock = clock;
    this.exited = new Promise((resolve) => {
      const over = (exit: Exit) => {
        this.signal("SIGKILL"); // processes that it started and left behind
        resolve(exit);
      };
      child.once("exit", (code, signal) =>
        over({ how: signal ? `ended with signal ${signal}` : `ended with exit code ${code}`, code }),
      );
      child.once("error", (error) => {
        if (child.pid === undefined) over({ how: `could not be started: ${error.message}` });
      });
    });
  }

  /** Resolves when its output has been read, which may be after its exit. */
  async drained(): Promise<void> {
    const { stderr } = this.#child;
    if (!stderr || stderr.readableEnded || stderr.destroyed) return;
    await within(500, new Promise((resolve) => stderr.once("close", resolve)), this.#clock);
  }

  async end(graceMs: number): Promise<void> {
    this.signal("SIGTERM");
    if ((await within(graceMs, this.exited, this.#clock)) === "late") {
      this.signal("SIGKILL");
      await this.exited;
    }
  }

  /** Sends the signal to the whole group. A group without processes is no error. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  }
}
