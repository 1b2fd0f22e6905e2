/**
 * The keys of capabilities (C1), from a file with one key a line, which only orchestrators can read. The
 * first key makes new capabilities; capabilities made with any of the keys are accepted. The file is read
 * again while the process runs: a rotation needs no restart.
 */

import { readFileSync } from "node:fs";
import { capabilityKey, type MacKey } from "../../../shared/capabilities/index.ts";
import { Fault, messageOf } from "../../../shared/errors/index.ts";
import { announceFault, type Runtime, type Service, type Timer } from "../../../shared/runtime/index.ts";

/** How soon the first key of a changed file is used for new capabilities. */
const readEveryMs = 10_000;
/**
 * A capability with an unknown key makes the process read the file at once, at most this often: it may be a
 * forgery.
 */
const soonestMs = 1_000;
const pattern = /^[A-Za-z0-9_-]{43,}$/;

export class KeysFile implements Service {
  readonly #path: string;
  readonly #runtime: Pick<Runtime, "clock" | "announce">;
  #text = "";
  #keys: readonly MacKey[] = [];
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  /** Throws a fault if the file holds no keys. */
  constructor(path: string, runtime: Pick<Runtime, "clock" | "announce">) {
    this.#path = path;
    this.#runtime = runtime;
    this.#read();
  }

  readonly keys = (): readonly MacKey[] => this.#keys;

  /** True if there are other keys now. */
  readonly refresh = (): boolean => {
    const now = this.#runtime.clock.monotonic();
    if (now - this.#readAt < soonestMs) return false;
    try {
      return this.#read();
    } catch (error) {
      announceFault(this.#runtime, "capability keys", error, { code: "capability_keys_unreadable" });
      return false; // the keys known so far stay
    }
  };

  async start(): Promise<void> {
    this.#timer = this.#runtime.clock.after(readEveryMs, () => {
      this.refresh();
      if (this.#timer) void this.start();
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #read(): boolean {
    this.#readAt = this.#runtime.clock.monotonic();
    const text = contentOf(this.#path);
    if (text === this.#text) return false;
    const lines = text.split("\n").flatMap((line) => line.trim() || []);
    if (lines.length === 0 || !lines.every((line) => pattern.test(line)))
      throw unreadable(`${this.#path} must hold one key a line, each of 32 bytes or more as base64url`);
    this.#keys = lines.map(capabilityKey);
    this.#text = text;
    return true;
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(`${path} cannot be read: ${messageOf(error)}`);
  }
}

const unreadable = (message: string): Fault =>
  new Fault("config", {
    code: "capability_keys_unreadable",
    message: `HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS: ${message}`,
    hint: "`holdfast security init` writes such a file; `head -c 32 /dev/urandom | basenc --base64url -w0` makes a key.",
  });
