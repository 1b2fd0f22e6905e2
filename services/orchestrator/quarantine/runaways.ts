/**
 * Code that never returns (an endless loop, synchronous or of microtasks) blocks the whole thread; no timer
 * of this thread can end it (T9). So another thread watches: it writes a note about the instance and kills
 * the process. The next owner of the partition finds the note and parks that one instance; all others go on.
 */

import { z } from "zod";
import { wireObject } from "../../../schemas/index.ts";
import { Bucket, decode, type Stoppable } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import { watchWindows } from "../../../shared/replay/index.ts";
import { once, type Service } from "../../../shared/runtime/index.ts";
import type { ConnectionSettings } from "../../run-service.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { runawayKey } from "./runaway-note.ts";
import { TurnMark } from "./turn-mark.ts";

const RunawayNote = wireObject({
  /** Fingerprint of the application that did not return: other code gets another chance. */
  build: z.string(),
  ms: z.number(),
});

/** What the watchdog thread needs to watch the turns. */
export interface WatchdogSetup {
  connection: ConnectionSettings;
  bucket: string;
  mark: SharedArrayBuffer;
  limitMs: number;
  build: string;
}

export interface RunawaysOptions {
  build: string;
  /**
   * Memory where the running turn is marked for the watchdog. Undefined: no watchdog runs; existing notes are
   * honoured all the same.
   */
  mark: SharedArrayBuffer | undefined;
}

export class Runaways implements Service {
  readonly #bucket: Bucket;
  readonly #options: RunawaysOptions;
  readonly #known = new Map<string, number>();
  #watch: Stoppable | undefined;

  constructor(deps: Pick<EngineDeps, "bus" | "names">, options: RunawaysOptions) {
    this.#options = options;
    this.#bucket = new Bucket(deps.bus, deps.names.bucket("settings"));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const onEntry = (event: { kind: string; key: string; value?: Uint8Array }) => {
        const instanceId = event.key.slice(runawayKey("").length);
        const note = event.value && decode(RunawayNote, event.value);
        if (note?.kind === "ok" && note.value.build === this.#options.build)
          this.#known.set(instanceId, note.value.ms);
        else this.#known.delete(instanceId);
      };
      this.#bucket.watch(runawayKey("*"), { onEntry, onCaughtUp: resolve }).then((watch) => {
        this.#watch = watch;
      }, reject);
    });
    const { mark: buffer } = this.#options;
    if (!buffer) return;
    const mark = new TurnMark(buffer);
    watchWindows((instanceId) => mark.set(instanceId, performance.timeOrigin + performance.now()));
  }

  /** Why this build must not run the instance; undefined if it may. */
  whyNot(instanceId: string): Fault | undefined {
    const ms = this.#known.get(instanceId);
    if (ms === undefined) return undefined;
    return new Fault("nondeterminism", {
      code: "runaway_turn",
      message: `a turn of this instance did not end within ${ms} ms and was stopped with its process`,
      hint: "Look for an endless loop in its code; deploying other code lets it go on.",
    });
  }

  stop = once(async () => {
    watchWindows(() => undefined);
    await this.#watch?.stop();
  });
}
