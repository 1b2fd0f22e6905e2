import type { ChildProcess } from "node:child_process";
import { within } from "../../../shared/runtime/index.ts";
import type { Exit } from "./carrier.ts";

/** A child and all it started, with a process group of their own: ended together, nothing is left behind (HOST-3). */
export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly exited: Promise<Exit>;

  /** `child` was started with `detached`, which makes it the leader of a group. */
  constructor(child: ChildProcess) {
    this.#child = child;
    this.exited = new Promise((resolve) => {
      const over = (exit: Exit) => {
        this.signal("SIGKILL"); // what it started and left behind
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

  /** Its last words may arrive after its exit. */
  async drained(): Promise<void> {
    const { stderr } = this.#child;
    if (!stderr || stderr.readableEnded || stderr.destroyed) return;
    await within(500, new Promise((resolve) => stderr.once("close", resolve)));
  }

  async end(graceMs: number): Promise<void> {
    this.signal("SIGTERM");
    if ((await within(graceMs, this.exited)) === "late") {
      this.signal("SIGKILL");
      await this.exited;
    }
  }

  /** To the whole group. Nobody there any more is as good as told. */
  signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  }
}
