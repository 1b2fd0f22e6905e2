/** One nats-server process from spawn to exit. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { watchOwnDeath } from "./death-watch.ts";

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** Ended by `stop()`. */
  asked: boolean;
}

export interface SpawnOptions {
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
    // What the server says before it has read its configuration goes to stderr: into the same file.
    const log = openSync(logFile, "a");
    // Its own group: on Ctrl-C the services need the server until they have drained.
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
      // Emitted instead of exit when the file could not be executed at all, later when a signal could not be sent.
      this.#child.on("error", () => {
        if (this.#child.pid === undefined) settle(null, null);
      });
    });
  }

  /** `undefined` when it could not be executed. */
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
    // A paused server sees SIGTERM only when it goes on.
    this.kill("SIGCONT");
    const timer = setTimeout(() => this.kill("SIGKILL"), graceMs);
    await this.exited;
    clearTimeout(timer);
  }
}
