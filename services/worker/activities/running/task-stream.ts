/** Stream output of running work: numbered chunks on `streams.<instanceId>.<execution>.<of>`. */
import type { ActivityTask, StreamChunk } from "../../../../schemas/index.ts";
import type { Bus, Subjects } from "../../../../shared/bus/index.ts";
import { derivedCapability } from "../../../../shared/capabilities/index.ts";
import type { StreamWriter } from "../../../../shared/definitions/index.ts";
import { HoldfastError } from "../../../../shared/errors/index.ts";
import { announceFault, type Runtime, token, writeJson } from "../../../../shared/runtime/index.ts";

/** Where the chunks of one run go. The engine closes it when the run is over. */
export interface StreamSink extends StreamWriter {
  /**
   * Ends the stream; resolves when the written chunks are stored, so that a reader of the result misses none.
   */
  close(): Promise<void>;
}

const largestChunkBytes = 256 * 1024;
const tries = 3;

interface TaskStreamDeps {
  bus: Bus;
  names: Subjects;
  runtime: Runtime;
}

export class TaskStream implements StreamSink {
  readonly #deps: TaskStreamDeps;
  readonly #task: ActivityTask;
  readonly #run: number;
  readonly #subject: string;
  readonly #capability: string | undefined;
  /** Part of the message ids: another worker can have used an id that can be guessed (SEC-2). */
  readonly #unique: string;
  readonly #pending = new Set<Promise<void>>();
  #index = 0;
  #closed = false;

  constructor(deps: TaskStreamDeps, task: ActivityTask, run: number) {
    this.#deps = deps;
    this.#task = task;
    this.#run = run;
    this.#subject = deps.names.stream(task.instanceId, task.execution, task.of);
    this.#unique = token(deps.runtime.random);
    this.#capability =
      task.capability === undefined ? undefined : derivedCapability(task.capability, "stream");
  }

  /** Resolves when the chunk is stored. */
  readonly write = (chunk: unknown): Promise<void> => {
    const storing = this.#write(chunk);
    const guarded = storing.catch((error: unknown) => this.#announce(error));
    this.#pending.add(guarded);
    void guarded.then(() => this.#pending.delete(guarded));
    return storing;
  };

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#pending);
  }

  async #write(value: unknown): Promise<void> {
    if (this.#closed) {
      throw new HoldfastError({ code: "stream_closed", message: "the run this stream belongs to is over" });
    }
    const index = this.#index;
    const body = this.#encode(index, value);
    this.#index++; // counted only now: a refused chunk leaves no gap
    const { instanceId, execution, of, attempt } = this.#task;
    const msgId = `chunk-${instanceId}-${execution}-${of}-${attempt}-${this.#run}-${this.#unique}-${index}`;
    for (let tried = 0; tried < tries; tried++) {
      const outcome = await this.#deps.bus.publish(this.#subject, body, { msgId });
      if (outcome.kind === "stored") return;
    }
    throw new HoldfastError({
      code: "stream_unavailable",
      message: `chunk ${index} was not confirmed by the server`,
      retryable: true,
    });
  }

  #encode(index: number, value: unknown): Uint8Array {
    const chunk: StreamChunk = {
      v: 1,
      attempt: this.#task.attempt,
      run: this.#run,
      index,
      at: this.#deps.runtime.clock.now(),
      chunk: { json: value === undefined ? null : value },
      capability: this.#capability,
    };
    const body = Buffer.from(writeJson(chunk));
    if (body.length <= largestChunkBytes) return body;
    throw new HoldfastError({
      code: "stream_chunk_too_large",
      message: `a chunk of ${body.length} bytes is over the limit of ${largestChunkBytes}`,
    });
  }

  /** User code may not await the write: the error is announced once, and causes no unhandled rejection. */
  #announce(error: unknown): void {
    announceFault(this.#deps.runtime, "worker.stream", error, { code: "stream_write" });
  }
}
