import { connect, type Socket } from "node:net";
import { onLines } from "./lines.ts";

interface Waiting {
  resolve(line: string): void;
  reject(error: Error): void;
}

/** A line there, a line back. */
export class Connection {
  readonly #socket: Socket;
  #waiting: Waiting | undefined;
  #broken: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    onLines(socket, (line) => this.#answered(line));
    socket.on("error", (error) => this.#break(error));
    socket.on("close", () => this.#break(new Error("the server has closed the connection")));
  }

  static open(address: { host: string; port: number }, signal?: AbortSignal): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ ...address, noDelay: true, ...(signal && { signal }) });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  get broken(): boolean {
    return this.#broken !== undefined;
  }

  /** One question at a time. */
  ask(question: string): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#broken) return reject(this.#broken);
      this.#waiting = { resolve, reject };
      this.#socket.write(`${question}\n`);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #answered(line: string): void {
    this.#waiting?.resolve(line);
    this.#waiting = undefined;
  }

  #break(error: Error): void {
    this.#broken ??= error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}
