import { Connection } from "./connection.ts";

export interface PoolConfig {
  host: string;
  port: number;
  size: number;
}

/** A fixed number of connections. One that breaks is replaced when its turn comes. */
export class ConnectionPool {
  readonly #config: PoolConfig;
  readonly #free: Connection[];
  readonly #waiting: ((connection: Connection) => void)[] = [];
  #opened: number;

  private constructor(config: PoolConfig, connections: Connection[]) {
    this.#config = config;
    this.#free = connections;
    this.#opened = connections.length;
  }

  /** All or none: a pool that cannot be opened leaves no connection behind. */
  static async open(config: PoolConfig, signal: AbortSignal): Promise<ConnectionPool> {
    const opening = Array.from({ length: config.size }, () => Connection.open(config, signal));
    const outcomes = await Promise.allSettled(opening);
    const open = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (!failed) return new ConnectionPool(config, open);
    for (const connection of open) connection.close();
    throw failed.reason;
  }

  async use<T>(act: (connection: Connection) => Promise<T>): Promise<T> {
    let connection = this.#free.pop() ?? (await new Promise<Connection>((give) => this.#waiting.push(give)));
    try {
      if (connection.broken) connection = await this.#replace();
      return await act(connection);
    } finally {
      const next = this.#waiting.shift();
      if (next) next(connection);
      else this.#free.push(connection);
    }
  }

  get facts() {
    return { free: this.#free.length, waiting: this.#waiting.length, opened: this.#opened };
  }

  close(): void {
    for (const connection of this.#free.splice(0)) connection.close();
  }

  async #replace(): Promise<Connection> {
    this.#opened++;
    return Connection.open(this.#config);
  }
}
