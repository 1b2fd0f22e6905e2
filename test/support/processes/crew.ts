import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export interface Crew {
  /** All of them at once. */
  kill(): void;
}

/** Processes with many workers each. */
export class Crews implements AsyncDisposable {
  readonly #env: Record<string, string>;
  readonly #children = new Map<ChildProcess, Promise<unknown>>();

  constructor(env: Record<string, string>) {
    this.#env = env;
  }

  /** Resolves when all of them are ready. */
  async start(count: number): Promise<Crew> {
    const entry = fileURLToPath(new URL("./crew-child.mjs", import.meta.url));
    const child = fork(entry, [String(count)], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...this.#env },
    });
    let stderr = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    const exited = once(child, "exit").then(() => "exited" as const);
    this.#children.set(child, exited);
    const allReady = new Promise<"ready">((resolve) => {
      let ready = 0;
      child.on("message", () => {
        if (++ready === count) resolve("ready");
      });
    });
    if ((await Promise.race([allReady, exited])) === "exited") throw new Error(`the crew ended: ${stderr}`);
    return { kill: () => void child.kill("SIGKILL") };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children.keys()) child.kill("SIGKILL");
    await Promise.all(this.#children.values());
  }
}
