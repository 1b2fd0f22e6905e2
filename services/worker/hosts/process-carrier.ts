import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Carrier, CarrierListener, HostSetup } from "./carrier.ts";
import { LastWords } from "./last-words.ts";
import { ProcessGroup } from "./process-group.ts";
import type { FromHost, Post, ToHost } from "./protocol.ts";

/** A process with a group of its own, so that what it starts ends with it. */
export class ProcessCarrier implements Carrier {
  readonly #child: ChildProcess;
  readonly #words: LastWords;
  readonly #group: ProcessGroup;

  constructor(setup: HostSetup, env: NodeJS.ProcessEnv) {
    const sources = import.meta.url.endsWith(".ts");
    const entry = fileURLToPath(
      new URL(sources ? "./process-main.ts" : "./process-main.js", import.meta.url),
    );
    this.#child = fork(entry, [JSON.stringify(setup), String(process.pid)], {
      detached: true,
      serialization: "advanced",
      env,
      // Sources need a loader; the worker's own flags (inspectors, test runners) are not for it.
      execArgv: sources ? ["--import", loader()] : [],
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    this.#words = new LastWords(this.#child.stderr, process.stderr);
    this.#group = new ProcessGroup(this.#child);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  readonly post: Post<ToHost> = (message) => {
    // A channel that is closing has an exit coming: whoever waits for an answer hears of that.
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
    return this.#words.toString();
  }

  end(graceMs: number): Promise<void> {
    return this.#group.end(graceMs);
  }
}

const loader = (): string => pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
