/** The services of one `dev`: started, shown, kept alive and stopped together. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fault } from "../../../shared/errors/index.ts";
import { once } from "../../../shared/runtime/index.ts";
import type { Environment } from "../../config.ts";
import { packageDir } from "../../version.ts";
import { LogTail, shownLogLine } from "./log-tail.ts";
import { type Death, ServiceProcess } from "./service-process.ts";

export interface CrewOptions {
  logDir: string;
  env: Environment;
  /** For people, a line at a time. */
  onNote: (text: string) => void;
}

export class DevProcesses {
  readonly #options: CrewOptions;
  readonly #members: { process: ServiceProcess; tail: LogTail }[] = [];

  #stopping = false;

  constructor(options: CrewOptions) {
    this.#options = options;
  }

  /** Resolves when it is ready. Throws `service_failed` with its last words where it cannot start. */
  async start(name: string, service: string, env: Environment = {}): Promise<ServiceProcess> {
    if (this.#stopping) throw new Fault("config", { code: "service_failed", message: "dev is stopping" });
    const { onNote } = this.#options;
    const logFile = join(this.#options.logDir, `${name}.log`);
    // Only of this run: it cannot grow for ever, and nobody reads old words as new ones.
    writeFileSync(logFile, "");
    const process = new ServiceProcess({
      name,
      entry: join(packageDir(), "bin", "holdfast.js"),
      args: [service],
      env: { ...this.#options.env, ...env },
      logFile,
      onDeath: (death, delayMs) => onNote(`${name} ${ending(death)}; starting it again in ${delayMs} ms`),
    });
    const tail = new LogTail(logFile, (line) => {
      const shown = shownLogLine(name, line);
      if (shown !== undefined) onNote(shown);
    });
    this.#members.push({ process, tail });
    const outcome = await process.start();
    if (outcome === "ready") return process;
    throw new Fault("config", {
      code: "service_failed",
      message: `${name} did not start: ${lastWords(logFile) ?? ending(outcome)}`,
      hint: `Its whole log is in ${logFile}.`,
    });
  }

  stop = once(async () => {
    this.#stopping = true;
    await Promise.all(this.#members.map(({ process }) => process.stop()));
    for (const { tail } of this.#members) tail.stop();
  });
}

/** What a service that cannot start says, see report-error.ts. */
function lastWords(logFile: string): string | undefined {
  const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
  const said = lines.findLast((line) => line.startsWith("holdfast: "));
  return (said ?? lines.at(-1))?.replace(/^holdfast: /, "") || undefined;
}

const ending = ({ code, signal }: Death): string =>
  signal !== null ? `was ended by ${signal}` : `has ended with code ${code ?? "unknown"}`;
