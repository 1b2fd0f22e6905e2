import { createServer } from "node:net";

/** The given port of this machine if it is free, else the next one that is. Somebody may be quicker all the same. */
export async function freePortFrom(port: number): Promise<number> {
  for (let candidate = port; candidate < port + 100; candidate++) {
    if (await isFree(candidate)) return candidate;
  }
  return port;
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
