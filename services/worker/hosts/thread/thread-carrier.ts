import type { Worker } from "node:worker_threads";
import { type Clock, startThread, within } from "../../../../shared/runtime/index.ts";
import type { Carrier, CarrierListener, HostSetup } from "../isolated/carrier.ts";
import type { FromHost, Post, ToHost } from "../isolated/protocol.ts";
import { LastLines } from "../process/last-lines.ts";

/** A thread of this process: buffers move to it, and a crash of its code ends only the thread. */
export class ThreadCarrier implements Carrier {
  readonly pid = undefined;
  readonly #thread: Worker;
  readonly #stderr: LastLines;
  readonly #exited: Promise<void>;
  readonly #clock: Clock;

  constructor(setup: HostSetup, env: NodeJS.ProcessEnv, clock: Clock) {
    this.#clock = clock;
    // `stderr` gives the worker the stream; without it the last lines would go to the terminal only.
    this.#thread = startThread(import.meta.url, "./thread-main", { workerData: setup, env, stderr: true });
    this.#stderr = new LastLines(this.#thread.stderr, process.stderr);
    this.#exited = new Promise((resolve) => this.#thread.once("exit", () => resolve()));
  }

  readonly post: Post<ToHost> = (message, transfer) => this.#thread.postMessage(message, transfer);

  listen(listener: CarrierListener): void {
    let cause: string | undefined;
    this.#thread.on("message", (message: FromHost) => listener.message(message));
    this.#thread.once("error", (error: Error) => {
      cause = error.stack ?? error.message;
    });
    this.#thread.once("messageerror", (error: Error) => {
      cause = `a message could not be read: ${error.message}`;
      void this.#thread.terminate();
    });
    this.#thread.once("exit", (code) => {
      listener.exit({ how: `ended with exit code ${code}${cause === undefined ? "" : `: ${cause}`}` });
    });
  }

  lastWords(): string {
    return this.#stderr.toString();
  }

  /** Also ends a thread in an endless loop; a thread inside native code ends when that returns. */
  async end(graceMs: number): Promise<void> {
    void this.#thread.terminate();
    await within(graceMs, this.#exited, this.#clock);
  }
}
