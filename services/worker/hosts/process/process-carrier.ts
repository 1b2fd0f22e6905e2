import { type ChildProcess, fork } from "node:child_process";
import { builtModule, type Clock } from "../../../../shared/runtime/index.ts";
import type { Will, WillMessage } from "../../supervise/last-will.ts";
import type { Carrier, CarrierListener, HostSetup } from "../isolated/carrier.ts";
import type { FromHost, Post, ToHost } from "../isolated/protocol.ts";
import { LastLines } from "./last-lines.ts";
import { ProcessGroup } from "./process-group.ts";

/** A process with a group of its own, so that the processes it starts end with it. */
export class ProcessCarrier implements Carrier {
  readonly #child: ChildProcess;
  readonly #stderr: LastLines;
  readonly #group: ProcessGroup;

  /** `will`: what the host does for the worker if the worker dies. */
  constructor(setup: HostSetup, env: NodeJS.ProcessEnv, clock: Clock, will?: Will) {
    this.#child = fork(
      builtModule(import.meta.url, "./process-main"),
      [JSON.stringify(setup), String(process.pid)],
      {
        detached: true,
        serialization: "advanced",
        env,
        // The worker's own flags (inspectors, test runners) are not passed on.
        execArgv: [],
        stdio: ["ignore", "inherit", "pipe", "ipc"],
      },
    );
    if (will) this.#child.send({ kind: "will", will } satisfies WillMessage, () => undefined);
    this.#stderr = new LastLines(this.#child.stderr, process.stderr);
    this.#group = new ProcessGroup(this.#child, clock);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  readonly post: Post<ToHost> = (message) => {
    // A channel that is closing means that the process exits: open requests fail with that exit.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  };

  listen(listener: CarrierListener): void {
    this.#child.on("message", (message) => listener.message(message as FromHost));
    void this.#group.exited.then(async (exit) => {
      await this.#group.drained();
      listener.exit(exit);
    });
  }

  lastWords(): string {
    return this.#stderr.toString();
  }

  end(graceMs: number): Promise<void> {
    return this.#group.end(graceMs);
  }
}
