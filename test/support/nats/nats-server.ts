/** Test kit: a real nats-server on a temporary folder that can be killed, paused and started again on its port. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type EmbeddedNats,
  type EmbeddedNatsOptions,
  startEmbeddedNats,
} from "../../../shared/embedded-nats/index.ts";

export type NatsOptions = Pick<
  EmbeddedNatsOptions,
  "port" | "serverName" | "syncAlways" | "cacheDir" | "path"
> & {
  extraConfig?: string | ((dataDir: string) => string);
  /** Used and kept instead of a temporary folder. */
  dataDir?: string;
};

export async function startNats({ extraConfig, ...options }: NatsOptions = {}): Promise<TestNats> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), "holdfast-nats-")));
  const removeDataDir = async (): Promise<void> => {
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
  };
  const more = typeof extraConfig === "function" ? extraConfig(dataDir) : extraConfig;
  const settings = { ...options, dataDir, ...(more === undefined ? {} : { extraConfig: more }) };
  try {
    const server = await startEmbeddedNats(settings);
    return new TestNats(server, { ...settings, port: server.port }, removeDataDir);
  } catch (error) {
    await removeDataDir();
    throw error;
  }
}

export class TestNats {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  readonly version: string;
  readonly #options: EmbeddedNatsOptions;
  readonly #removeDataDir: () => Promise<void>;
  #server: EmbeddedNats;

  constructor(server: EmbeddedNats, options: EmbeddedNatsOptions, removeDataDir: () => Promise<void>) {
    this.url = server.url;
    this.port = server.port;
    this.dataDir = server.dataDir;
    this.version = server.version;
    this.#server = server;
    this.#options = options;
    this.#removeDataDir = removeDataDir;
  }

  /** Of the process running now; another one after a restart. */
  get pid(): number {
    return this.#server.pid;
  }

  /** SIGKILL; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#server.kill("SIGKILL");
    await this.#server.exited;
  }

  /** Ready again on the same port and data. A server still running is stopped with SIGTERM first. */
  async restart(): Promise<void> {
    await this.#server.stop();
    this.#server = await startEmbeddedNats(this.#options);
  }

  /** SIGSTOP: connections stay open and nothing answers. */
  pause(): void {
    this.#server.kill("SIGSTOP");
  }

  resume(): void {
    this.#server.kill("SIGCONT");
  }

  /** Ends the server and removes the temporary folder. */
  async stop(): Promise<void> {
    await this.#server.stop();
    await this.#removeDataDir();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
