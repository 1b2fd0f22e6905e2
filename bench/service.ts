/** One of the engine's services as a process of its own, started as in production: `holdfast <service>`. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const entry = fileURLToPath(new URL("../bin/holdfast.js", import.meta.url));

const stopGraceMs = 10_000;

export type ServiceName = "orchestrator" | "worker" | "watcher" | "gateway";

interface ServiceOptions {
  service: ServiceName;
  env: Record<string, string>;
  logFile: string;
  /** Arguments of node itself. */
  execArgv?: string[];
}

export class ServiceProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when the service has reported that it is ready. */
  static async start({ service, env, logFile, execArgv = [] }: ServiceOptions): Promise<ServiceProcess> {
    const log = openSync(logFile, "a");
    const child = fork(entry, [service], {
      env: { ...process.env, LOG_LEVEL: "warn", ...env },
      execArgv,
      stdio: ["ignore", log, log, "ipc"],
    });
    closeSync(log);
    const died = once(child, "exit").then(([code]) => {
      throw new Error(`the ${service} ended with ${code}: ${readFileSync(logFile, "utf8").slice(-2000)}`);
    });
    await Promise.race([once(child, "message"), died]);
    died.catch(() => undefined); // from here on it ends when it is stopped, or is killed on purpose
    return new ServiceProcess(child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Asks the probe inside the service (probe.js). */
  async ask<T>(question: string): Promise<T> {
    const answer = once(this.#child, "message");
    this.#child.send({ probe: question });
    const [message] = await answer;
    return message as T;
  }

  /** Resolves when the process has ended for any reason. */
  async gone(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }

  async end(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const gone = this.gone();
    this.#child.kill(signal);
    const killTimer = setTimeout(() => this.#child.kill("SIGKILL"), stopGraceMs);
    await gone;
    clearTimeout(killTimer);
  }
}
