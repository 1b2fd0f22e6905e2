import { createServer } from "node:net";

/** Returns the given port if it is free, else the next free one. Another process may still take it first. */
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
