/**
 * One service as a child process: kept running, its output in a file of its own.
 *
 * DEV-1 A child is its own process group, so that Ctrl-C reaches `dev` alone and `dev` decides the order of stopping.
 * DEV-2 It stops by itself when the channel to us closes: nothing is left running, however we end.
 * DEV-3 Its output goes straight into a file: a child must not die of a broken pipe while it is still cleaning up.
 */
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { backoffMs, once } from "../../../shared/runtime/index.ts";
import type { Environment } from "../../config.ts";

export interface ServiceProcessOptions {
  /** Shown to people: `worker-2`. */
  name: string;
  entry: string;
  args: string[];
  env: Environment;
  logFile: string;
  /** It ended without being told to; it is started again after the delay. */
  onDeath: (death: Death, delayMs: number) => void;
}

export interface Death {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const restartBackoff = { initialMs: 200, maxMs: 10_000, factor: 2 };
/** Alive for so long: the next death is counted as the first. */
const settledMs = 30_000;
const stopGraceMs = 20_000;

export class ServiceProcess {
  readonly name: string;
  readonly #options: ServiceProcessOptions;
  #child: ChildProcess | undefined;
  #exited: Promise<Death> = Promise.resolve({ code: 0, signal: null });
  #restart: NodeJS.Timeout | undefined;
  #deaths = 0;
  #stopping = false;

  constructor(options: ServiceProcessOptions) {
    this.name = options.name;
    this.#options = options;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when it has said that it is ready; with its death where it dies before. From then on it is kept alive. */
  async start(): Promise<"ready" | Death> {
    const { ready, exited } = this.#spawn();
    const first = await Promise.race([ready, exited]);
    if (first === "ready") this.#watch();
    return first;
  }

  stop = once(async () => {
    this.#stopping = true;
    clearTimeout(this.#restart);
    if (!this.#child) return;
    this.#signal("SIGTERM");
    const kill = setTimeout(() => this.#signal("SIGKILL"), stopGraceMs);
    await this.#exited;
    clearTimeout(kill);
  });

  #spawn(): { ready: Promise<"ready">; exited: Promise<Death> } {
    const { entry, args, env, logFile } = this.#options;
    const log = openSync(logFile, "a");
    const child = fork(entry, args, {
      env: { ...env },
      detached: true, // DEV-1
      execArgv: [],
      stdio: ["ignore", log, log, "ipc"], // DEV-3
    });
    closeSync(log);
    this.#child = child;
    const ready = new Promise<"ready">((resolve) => {
      child.on("message", (message) => {
        if (isReady(message)) resolve("ready");
      });
    });
    this.#exited = new Promise<Death>((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal }));
      child.once("error", () => resolve({ code: null, signal: null }));
    });
    return { ready, exited: this.#exited };
  }

  #watch(): void {
    const since = performance.now();
    void this.#exited.then((death) => {
      if (this.#stopping) return;
      if (performance.now() - since > settledMs) this.#deaths = 0;
      const delayMs = backoffMs(restartBackoff, ++this.#deaths);
      this.#options.onDeath(death, delayMs);
      this.#restart = setTimeout(() => {
        this.#spawn();
        this.#watch();
      }, delayMs);
    });
  }

  #signal(signal: NodeJS.Signals): void {
    // Signals are meant for the service; only the last resort takes its helpers along.
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      process.kill(signal === "SIGKILL" ? -pid : pid, signal);
    } catch {
      // It has ended meanwhile, which is what was wanted.
    }
  }
}

const isReady = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "ready" in message && message.ready === true;
