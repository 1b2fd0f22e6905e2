/**
 * The connection between one member and the server, through a proxy that a test can disconnect, reconnect and
 * cut for good.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class MemberConnection {
  readonly #to: { host: string; port: number };
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #connected = true;

  private constructor(to: { host: string; port: number }) {
    this.#to = to;
    this.#server = createServer((near) => this.#join(near));
  }

  static async open(to: { host: string; port: number }): Promise<MemberConnection> {
    const connection = new MemberConnection(to);
    await new Promise<void>((resolve, reject) => {
      connection.#server.once("error", reject);
      connection.#server.listen(0, "127.0.0.1", resolve);
    });
    return connection;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Breaks the connection for both ends; no new one can be made until it is reconnected. */
  disconnect(): void {
    this.#connected = false;
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }

  reconnect(): void {
    this.#connected = true;
  }

  cut(): void {
    this.disconnect();
    this.#server.close();
  }

  #join(near: Socket): void {
    if (!this.#connected) {
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
