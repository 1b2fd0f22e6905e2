import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below the range the system takes outgoing ports from (32768 on Linux, 49152 elsewhere). A port of that range can be
 * lost while the server is down for a restart: clients that try to reconnect may be given it, even connect to
 * themselves through it.
 */
const range = { from: 20_000, to: 32_000 };

/** A port free at this moment. The caller tries again with another one when it was lost before the server had it. */
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
