/** One nats-server process from spawn to exit. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { watchOwnDeath } from "./death-watch.ts";

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** True if `stop()` ended the process. */
  asked: boolean;
}

interface SpawnOptions {
  binary: string;
  configFile: string;
  logFile: string;
}

export class ServerProcess {
  readonly exited: Promise<ServerExit>;
  readonly #child: ChildProcess;
  #ended = false;
  #stopping: Promise<void> | undefined;

  constructor({ binary, configFile, logFile }: SpawnOptions) {
    // Before it has read its configuration the server writes to stderr: into the same file.
    const log = openSync(logFile, "a");
    // A process group of its own: on Ctrl-C the services need the server until they have drained.
    this.#child = spawn(binary, ["-c", configFile], { detached: true, stdio: ["ignore", log, log] });
    closeSync(log);
    const callOff = this.#child.pid === undefined ? undefined : watchOwnDeath(this.#child.pid);
    this.exited = new Promise((resolve) => {
      const settle = (code: number | null, signal: NodeJS.Signals | null): void => {
        this.#ended = true;
        callOff?.();
        resolve({ code, signal, asked: this.#stopping !== undefined });
      };
      this.#child.once("exit", settle);
      // Emitted instead of `exit` if the file could not be executed, and later if a signal could not be sent.
      this.#child.on("error", () => {
        if (this.#child.pid === undefined) settle(null, null);
      });
    });
  }

  /** Undefined if the binary could not be executed. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get ended(): boolean {
    return this.#ended;
  }

  kill(signal: NodeJS.Signals): boolean {
    return !this.#ended && this.#child.kill(signal);
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#end(graceMs);
    return this.#stopping;
  }

  async #end(graceMs: number): Promise<void> {
    this.kill("SIGTERM");
    // A paused server receives SIGTERM only after SIGCONT.
    this.kill("SIGCONT");
    const timer = setTimeout(() => this.kill("SIGKILL"), graceMs);
    await this.exited;
    clearTimeout(timer);
  }
}
