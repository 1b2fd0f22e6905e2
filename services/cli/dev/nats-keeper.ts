/** The embedded server of `dev`, restarted on the same port when it dies, so that its clients find it. */
import { setTimeout as delay } from "node:timers/promises";
import { type EmbeddedNats, startEmbeddedNats } from "../../../shared/embedded-nats/index.ts";
import { messageOf } from "../../../shared/errors/index.ts";
import { backoffMs, once } from "../../../shared/runtime/index.ts";

interface NatsKeeperOptions {
  dataDir: string;
  port: number | undefined;
  /** Further lines of the server's configuration. */
  serverConfig?: string | undefined;
  onNote: (text: string) => void;
}

const retry = { initialMs: 200, maxMs: 5_000, factor: 2 };

export class NatsKeeper {
  readonly #options: NatsKeeperOptions;
  #server: EmbeddedNats | undefined;
  #stopping = false;
  #restarting: Promise<void> | undefined;

  constructor(options: NatsKeeperOptions) {
    this.#options = options;
  }

  async start(): Promise<EmbeddedNats> {
    this.#server = await this.#launch(this.#options.port);
    return this.#server;
  }

  get pid(): number | undefined {
    return this.#server?.pid;
  }

  stop = once(async () => {
    this.#stopping = true;
    await this.#restarting;
    await this.#server?.stop();
  });

  #launch(port: number | undefined): Promise<EmbeddedNats> {
    const { dataDir, serverConfig, onNote } = this.#options;
    return startEmbeddedNats({
      dataDir,
      port,
      extraConfig: serverConfig,
      onProgress: onNote,
      onExit: () => {
        if (!this.#stopping) this.#restarting = this.#restart();
      },
    });
  }

  async #restart(): Promise<void> {
    const port = this.#server?.port;
    this.#options.onNote("the NATS server has ended; starting it again");
    for (let attempt = 1; !this.#stopping; attempt++) {
      try {
        this.#server = await this.#launch(port);
        return;
      } catch (error) {
        const why = messageOf(error);
        this.#options.onNote(`the NATS server could not be started: ${why}`);
        await delay(backoffMs(retry, attempt));
      }
    }
  }
}
