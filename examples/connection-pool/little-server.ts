import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { z } from "zod";
import { onLines } from "./lines.ts";

/** A real TCP server that answers every line in capitals. */
export class LittleServer {
  static readonly Facts = z.object({ port: z.int(), connections: z.int(), questions: z.int() });

  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #connections = 0;
  #questions = 0;

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async listen(): Promise<LittleServer> {
    const little = new LittleServer();
    little.#server.listen(0, "127.0.0.1");
    await once(little.#server, "listening");
    return little;
  }

  get facts(): z.infer<typeof LittleServer.Facts> {
    const address = this.#server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    return { port, connections: this.#connections, questions: this.#questions };
  }

  /** Connections open now. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Cuts every connection, as a server does that is started again. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.hangUp();
    await once(this.#server, "close");
  }

  #serve(socket: Socket): void {
    this.#connections++;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    onLines(socket, (line) => {
      this.#questions++;
      socket.write(`${line.toUpperCase()}\n`);
    });
  }
}
