import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the range from which the system takes outgoing ports (32768 on Linux, 49152 elsewhere). A port of
 * that range can be lost while the server restarts: the system may give it to a client that tries to
 * reconnect, which may even connect to itself.
 */
const range = { from: 20_000, to: 32_000 };

/**
 * Returns a port that is free at this moment. If another process takes it before the server does, the caller
 * tries another.
 */
export async function pickFreePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(range.from, range.to);
    if (await canListen(port)) return port;
  }
  throw new Error(`no free port found between ${range.from} and ${range.to}`);
}

export function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
