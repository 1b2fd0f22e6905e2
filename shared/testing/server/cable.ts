/**
 * The connection between one member and the server, through a proxy that a test can disconnect, reconnect and
 * cut for good.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Cable {
  readonly #to: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #plugged = true;

  private constructor(to: { host: string; port: number }) {
    this.#to = to;
    this.#server = createServer((near) => this.#join(near));
  }

  static async lay(to: { host: string; port: number }): Promise<Cable> {
    const cable = new Cable(to);
    await new Promise<void>((resolve, reject) => {
      cable.#server.once("error", reject);
      cable.#server.listen(0, "127.0.0.1", resolve);
    });
    return cable;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks the connection for both ends; no new one can be made until it is plugged in. */
  unplug(): void {
    this.#plugged = false;
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  plug(): void {
    this.#plugged = true;
  }

  cut(): void {
    this.unplug();
    this.#server.close();
  }

  #join(near: Socket): void {
    if (!this.#plugged) {
      near.destroy();
      return;
    }
    const far = connect({ ...this.#to, noDelay: true });
    near.setNoDelay(true);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}
