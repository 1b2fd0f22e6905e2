import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { cpuMsOf } from "../costs/process-cost.ts";

const file = fileURLToPath(new URL("./pages-process.ts", import.meta.url));

export interface Seen {
  events: number;
  bytes: number;
}

/** A process with several pages open that show the list and the overview. */
export class Pages {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async open(gateway: string, count: number): Promise<Pages> {
    const address = `${gateway}/api/events?topics=instances,overview`;
    const child = fork(file, [address, String(count)], { execArgv: ["--import", "tsx"] });
    const died = once(child, "exit").then(([code]) => {
      throw new Error(`the pages ended with ${code}`);
    });
    await Promise.race([once(child, "message"), died]);
    died.catch(() => undefined); // from here on it ends when it is stopped
    return new Pages(child);
  }

  get cpuMs(): number {
    return cpuMsOf(this.#child.pid ?? 0) ?? 0;
  }

  async seen(): Promise<Seen> {
    const answer = once(this.#child, "message");
    this.#child.send("seen");
    return (await answer)[0] as Seen;
  }

  async close(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.disconnect();
    await gone;
  }
}
