/**
 * A process with the model and nothing else: how many texts it can process, one by one and in batches. The
 * upper limit.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { batchSize, texts } from "../app/model.ts";

export class BareModel {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<BareModel> {
    const child = fork(fileURLToPath(new URL("./bare-model-process.ts", import.meta.url)));
    await once(child, "message");
    return new BareModel(child);
  }

  /** Milliseconds per text. */
  async perTextMs(count: number, batched: boolean): Promise<number> {
    const answer = once(this.#child, "message");
    this.#child.send({ texts: texts.slice(0, count), batchSize: batched ? batchSize : 1 } satisfies BareLoad);
    const [perTextMs] = await answer;
    return perTextMs as number;
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
  }
}

export interface BareLoad {
  texts: string[];
  batchSize: number;
}
