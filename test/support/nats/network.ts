/**
 * A network between a member and its server that can be as bad as a real one. What is held up is not lost: as with TCP it
 * arrives when the way is free again, unless the connection has ended by then.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Random } from "../../../shared/runtime/index.ts";

export type Weather =
  | { kind: "fair" }
  /** Everything takes this long, more or less; of so many pieces one resets its connection. */
  | { kind: "slow"; ms: number; jitterMs: number; resets: number }
  /** Nothing gets through, both ways or one; connections stay open. */
  | { kind: "silent"; way: "both" | "to server" | "to client" }
  /**
   * The server's side is gone without a notice to the client: its connection stays open, and new ones fail.
   */
  | { kind: "half-open" }
  /** Connections end, and new ones fail. */
  | { kind: "cut" };

interface Pair {
  client: Socket;
  server: Socket;
}

export class Network implements AsyncDisposable {
  readonly #listener: Server;
  readonly #targetPort: number;
  readonly #random: Random;
  readonly #pairs = new Set<Pair>();
  #weather: Weather = { kind: "fair" };

  private constructor(targetPort: number, random: Random) {
    this.#targetPort = targetPort;
    this.#random = random;
    this.#listener = createServer((client) => this.#accept(client));
  }

  static async start(targetPort: number, random: Random): Promise<Network> {
    const network = new Network(targetPort, random);
    network.#listener.listen(0, "127.0.0.1");
    await once(network.#listener, "listening");
    return network;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  set weather(weather: Weather) {
    this.#weather = weather;
    if (weather.kind === "cut") for (const pair of this.#pairs) end(pair);
    if (weather.kind === "half-open") for (const { server } of this.#pairs) server.destroy();
    if (weather.kind === "fair" || weather.kind === "slow") {
      // What was half open is noticed now: the machine answers that it knows no such connection.
      for (const pair of this.#pairs) if (pair.server.destroyed) end(pair);
      for (const { client, server } of this.#pairs) {
        client.resume();
        server.resume();
      }
    }
    if (weather.kind === "silent") for (const pair of this.#pairs) this.#hold(pair);
  }

  #hold({ client, server }: Pair): void {
    if (this.#weather.kind !== "silent") return;
    if (this.#weather.way !== "to client") client.pause();
    if (this.#weather.way !== "to server") server.pause();
  }

  #accept(client: Socket): void {
    if (this.#weather.kind === "cut" || this.#weather.kind === "half-open") {
      client.destroy();
      return;
    }
    const server = connect(this.#targetPort, "127.0.0.1");
    const pair: Pair = { client, server };
    this.#pairs.add(pair);
    for (const socket of [client, server]) socket.setNoDelay(true).on("error", () => undefined); // ends it below
    this.#carry(pair, client, server);
    this.#carry(pair, server, client);
    client.on("close", () => {
      this.#pairs.delete(pair);
      server.destroy();
    });
    server.on("close", () => {
      if (this.#weather.kind !== "half-open") client.destroy();
    });
    this.#hold(pair);
  }

  /** In order, whatever each piece is delayed by. */
  #carry(pair: Pair, from: Socket, to: Socket): void {
    let freeAt = 0;
    from.on("data", (piece: Buffer) => {
      const weather = this.#weather;
      if (weather.kind !== "slow") {
        const late = freeAt - performance.now();
        if (late > 0) setTimeout(() => to.write(piece), late);
        else to.write(piece);
        return;
      }
      if (this.#random.next() < weather.resets) {
        for (const socket of [pair.client, pair.server]) socket.resetAndDestroy();
        return;
      }
      const ms = weather.ms + (this.#random.next() * 2 - 1) * weather.jitterMs;
      freeAt = Math.max(freeAt, performance.now() + ms);
      setTimeout(() => to.write(piece), freeAt - performance.now());
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pair of this.#pairs) end(pair);
    this.#listener.close();
    await once(this.#listener, "close");
  }
}

function end({ client, server }: Pair): void {
  client.destroy();
  server.destroy();
}
