/** The processes of one `dev`: started, shown, kept alive and stopped together. */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import type { Environment } from "../../config.ts";
import { packageDir } from "../../version.ts";
import { LogTail, shownLogLine } from "./log-tail.ts";
import { type Death, ServiceProcess } from "./service-process.ts";

interface DevProcessesOptions {
  logDir: string;
  env: Environment;
  /** Settings of the processes of one service. */
  envOf?: ((service: string) => Environment) | undefined;
  /** Called with one line of text for people. */
  onNote: (text: string) => void;
}

export class DevProcesses {
  readonly #options: DevProcessesOptions;
  readonly #members = new Set<ServiceProcess>();
  /** One per log file: successive processes of one name write into the same file. */
  readonly #tails = new Map<string, LogTail>();
  /** Instance id → the reason last shown for its being parked. */
  readonly #parked = new Map<string, string>();

  #stopping = false;

  constructor(options: DevProcessesOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the service is ready. Throws `service_failed` with the service's last message if it cannot
   * start.
   */
  async start(name: string, service: string, env: Environment = {}): Promise<ServiceProcess> {
    if (this.#stopping) throw new Fault("config", { code: "service_failed", message: "dev is stopping" });
    const { onNote } = this.#options;
    const logFile = join(this.#options.logDir, `${name}.log`);
    this.#follow(name, logFile);
    const before = statSync(logFile).size;
    const process = new ServiceProcess({
      name,
      entry: join(packageDir(), "bin", "holdfast.js"),
      args: [service],
      env: { ...this.#options.env, ...this.#options.envOf?.(service), ...env },
      logFile,
      onDeath: (death, delayMs) => onNote(`${name} ${ending(death)}; starting it again in ${delayMs} ms`),
    });
    this.#members.add(process);
    const outcome = await process.start();
    if (outcome === "ready") return process;
    this.#members.delete(process);
    throw new Fault("config", {
      code: "service_failed",
      message: `${name} did not start: ${lastWords(logFile, before) ?? ending(outcome)}`,
      hint: `Its whole log is in ${logFile}.`,
    });
  }

  /** Stops a process that another one has replaced. */
  async retire(process: ServiceProcess): Promise<void> {
    await process.stop();
    this.#members.delete(process);
  }

  stop = once(async () => {
    this.#stopping = true;
    await Promise.all([...this.#members].map((process) => process.stop()));
    for (const tail of this.#tails.values()) tail.stop();
  });

  #follow(name: string, logFile: string): void {
    if (this.#tails.has(name)) return;
    // The file holds only this run: it does not grow for ever, and old lines are not mistaken for new ones.
    writeFileSync(logFile, "");
    const tail = new LogTail(logFile, (line) => {
      const shown = shownLogLine(name, line, this.#parked);
      if (shown !== undefined) this.#options.onNote(shown);
    });
    this.#tails.set(name, tail);
  }
}

/** The last message of a service that cannot start, see report-error.ts. */
function lastWords(logFile: string, from: number): string | undefined {
  const lines = readFileSync(logFile).subarray(from).toString("utf8").trimEnd().split("\n");
  const message = lines.findLast((line) => line.startsWith("holdfast: "));
  return (message ?? lines.at(-1))?.replace(/^holdfast: /, "") || undefined;
}

const ending = ({ code, signal }: Death): string =>
  signal !== null ? `was ended by ${signal}` : `has ended with code ${code ?? "unknown"}`;
