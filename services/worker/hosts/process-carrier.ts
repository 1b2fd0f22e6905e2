import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { within } from "../../../shared/runtime/index.ts";
import type { Carrier, CarrierListener, Exit, HostSetup } from "./carrier.ts";
import { LastWords } from "./last-words.ts";
import type { FromHost, Post, ToHost } from "./protocol.ts";

/** A process with a group of its own, so that what it starts ends with it. */
export class ProcessCarrier implements Carrier {
  readonly #child: ChildProcess;
  readonly #words: LastWords;
  readonly #exited: Promise<Exit>;

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
    this.#exited = new Promise((resolve) => {
      const over = (what: string) => {
        this.#signal("SIGKILL"); // what it started and left behind
        resolve({ what });
      };
      this.#child.once("exit", (code, signal) => over(signal ? `signal ${signal}` : `exit code ${code}`));
      this.#child.once("error", (error) => {
        if (this.#child.pid === undefined) over(`it could not be started: ${error.message}`);
      });
    });
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
    void this.#exited.then(async (exit) => {
      await this.#drained();
      listener.exit(exit);
    });
  }

  lastWords(): string {
    return this.#words.toString();
  }

  async end(graceMs: number): Promise<void> {
    this.#signal("SIGTERM");
    if ((await within(graceMs, this.#exited)) === "late") {
      this.#signal("SIGKILL");
      await this.#exited;
    }
  }

  /** Its last words may arrive after its exit. */
  async #drained(): Promise<void> {
    const { stderr } = this.#child;
    if (!stderr || stderr.readableEnded || stderr.destroyed) return;
    await within(500, new Promise((resolve) => stderr.once("close", resolve)));
  }

  /** To the whole group. Nobody there any more is as good as told. */
  #signal(signal: NodeJS.Signals): void {
    if (this.#child.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, signal);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
    }
  }
}

const loader = (): string => pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
