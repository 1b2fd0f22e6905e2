/**
 * Finds out which server answers on a port: a NATS server sends one INFO line before it is asked anything.
 */
import { connect } from "node:net";
import { z } from "zod";

const ServerInfo = z.object({
  server_id: z.string(),
  server_name: z.string(),
  version: z.string(),
  jetstream: z.boolean().default(false),
});
export type ServerInfo = z.infer<typeof ServerInfo>;

export type Answer = { kind: "nobody" } | { kind: "stranger" } | { kind: "server"; info: ServerInfo };

const timeoutMs = 2_000;
const longestInfo = 64 * 1024;

export interface Address {
  host: string;
  port: number;
}

export function readInfo({ host, port }: Address): Promise<Answer> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ port, host });
    const settle = (answer: Answer): void => {
      resolve(answer);
      socket.destroy();
    };
    let connected = false;
    const silent = (): void => settle({ kind: connected ? "stranger" : "nobody" });
    socket.setEncoding("utf8");
    socket.setTimeout(timeoutMs, silent);
    socket.once("connect", () => {
      connected = true;
    });
    socket.once("error", silent);
    socket.once("close", silent);
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\r\n");
      if (end >= 0) settle(parseInfo(text.slice(0, end)));
      else if (text.length > longestInfo) settle({ kind: "stranger" });
    });
  });
}

function parseInfo(line: string): Answer {
  if (!line.startsWith("INFO ")) return { kind: "stranger" };
  try {
    const { data } = ServerInfo.safeParse(JSON.parse(line.slice("INFO ".length)));
    return data ? { kind: "server", info: data } : { kind: "stranger" };
  } catch {
    return { kind: "stranger" }; // not JSON
  }
}
