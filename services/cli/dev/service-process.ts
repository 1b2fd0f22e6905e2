/**
 * One service as a child process: kept running, with its output in a file of its own.
 *
 * DEV-1 A child is its own process group, so that Ctrl-C reaches `dev` alone and `dev` decides the order of
 *    stopping.
 * DEV-2 A child stops by itself when its channel to `dev` closes: no child is left running, however `dev`
 *    ends.
 * DEV-3 A child's output goes straight into a file: it must not die of a broken pipe while it is still
 *    cleaning up.
 */
import { type ChildProcess, fork } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { backoffMs, once } from "../../../shared/runtime/index.ts";
import type { Environment } from "../../config.ts";

interface ServiceProcessOptions {
  /** The name shown to people: `worker-2`. */
  name: string;
  entry: string;
  args: string[];
  env: Environment;
  logFile: string;
  /** Called when the process ended without being asked to; it is started again after the delay. */
  onDeath: (death: Death, delayMs: number) => void;
}

export interface Death {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const restartBackoff = { initialMs: 200, maxMs: 10_000, factor: 2 };
/** After this long alive, the next death counts as the first again. */
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

  /**
   * Resolves to "ready" when the service reports it, or to its death if it dies before. From then on it is
   * started again when it dies.
   */
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
    // Signals go to the service alone; only SIGKILL goes to its whole process group.
    const { pid } = this.#child ?? {};
    if (pid === undefined) return;
    try {
      process.kill(signal === "SIGKILL" ? -pid : pid, signal);
    } catch {
      // The process ended meanwhile, which is what the caller wants.
    }
  }
}

const isReady = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "ready" in message && message.ready === true;
