/**
 * Shows the lines of the services' logs that people need: warnings, errors, and output of the user's own
 * code.
 */
import { closeSync, openSync, readSync } from "node:fs";
import { unparking } from "../../../shared/errors/index.ts";
import { oneLine } from "../terminal/text.ts";

const everyMs = 200;
const chunkBytes = 64 * 1024;

export class LogTail {
  readonly #file: string;
  readonly #onLine: (line: string) => void;
  readonly #timer: NodeJS.Timeout;
  #offset = 0;
  #rest = "";

  constructor(file: string, onLine: (line: string) => void) {
    this.#file = file;
    this.#onLine = onLine;
    this.#timer = setInterval(() => this.read(), everyMs);
  }

  /** Reads the lines written since the last read. */
  read(): void {
    const fd = openSync(this.#file, "r");
    try {
      const chunk = Buffer.alloc(chunkBytes);
      for (;;) {
        const bytes = readSync(fd, chunk, 0, chunkBytes, this.#offset);
        if (bytes === 0) return;
        this.#offset += bytes;
        const lines = (this.#rest + chunk.toString("utf8", 0, bytes)).split("\n");
        this.#rest = lines.pop() ?? "";
        for (const line of lines) this.#onLine(line);
      }
    } finally {
      closeSync(fd);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.read();
  }
}

/**
 * Undefined for lines that are not shown. `parked`: the reasons shown so far, by instance. A parked instance meets the code
 * again with each message that comes for it, and its reason is shown once.
 */
export function shownLogLine(service: string, line: string, parked: Map<string, string>): string | undefined {
  if (line.trim() === "") return undefined;
  const entry = parse(line);
  if (!entry) return `${service}: ${line}`;
  const { instanceId } = entry;
  if (entry.kind === "instance.parked" && typeof instanceId === "string") {
    const remedy = unparking(instanceId, String(entry.code));
    const shown = oneLine(
      `${instanceId} is parked: ${String(entry.message)} (${String(entry.code)}). To go on: ${remedy}`,
    );
    if (parked.get(instanceId) === shown) return undefined;
    parked.set(instanceId, shown);
    return shown;
  }
  if (entry.kind === "instance.resumed") {
    parked.delete(String(instanceId));
    return `${String(instanceId)} was parked and goes on`;
  }
  const level = String(entry.level);
  if (!["warn", "error", "fatal"].includes(level)) return undefined;
  const { level: _l, time: _t, service: _s, id: _i, pid: _p, kind, message, err: _e, ...fields } = entry;
  const what = [kind, message].filter((part) => part !== undefined).join(": ");
  const details = Object.entries(fields).map(([name, value]) => `${name}=${text(value)}`);
  return oneLine(`${service}: ${level}: ${[what, ...details].join(" ")}`);
}

const text = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

function parse(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    // Only the services' own log lines have both fields.
    return typeof value === "object" && value !== null && "level" in value && "service" in value
      ? { ...value }
      : undefined;
  } catch {
    return undefined; // A line that a user's code printed.
  }
}
