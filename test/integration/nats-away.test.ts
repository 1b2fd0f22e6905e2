/** NATS is not there when a service starts, or not any more when it opens its second connection. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { pickFreePort as freePort } from "../../shared/embedded-nats/free-port.ts";
import { startCluster } from "../support/nats/nats-cluster.ts";
import { startNats, type TestNats } from "../support/nats/nats-server.ts";
import { startWatcherProcess, type WatcherProcess } from "../support/processes/watcher-process.ts";

const app = fileURLToPath(new URL("../apps/durable.ts", import.meta.url));
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const act of undo.splice(0).reverse()) await act();
});

async function nats(): Promise<TestNats> {
  const server = await startNats();
  undo.push(() => server.stop());
  return server;
}

function ended(process: WatcherProcess): void {
  undo.push(async () => {
    process.kill("SIGKILL");
    await process.exited;
  });
}

/** Passes connections on; refused ones are closed at once. */
async function proxy(to: number, refuses: (nth: number) => boolean): Promise<number> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    if (refuses(++count)) return void socket.destroy();
    const on = connect(to, "127.0.0.1");
    sockets.add(on);
    on.on("error", () => undefined);
    socket.pipe(on).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  undo.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

test("defect 20: a service waits for NATS, says so, and starts when it is there", async () => {
  const server = await nats();
  const port = await proxy(server.port, (nth) => nth <= 3);
  const watcher = await startWatcherProcess(`nats://127.0.0.1:${port}`);
  ended(watcher);
  const waiting = watcher.lines.find((line) => line.code === "nats_unreachable");
  expect(waiting?.message).toMatch(/waiting for it, at most 30 s/);
}, 60_000);

test("defect 20: it gives up when its setting says so", async () => {
  const port = await freePort();
  const starting = startWatcherProcess(`nats://127.0.0.1:${port}`, { NATS_WAIT: "1s" });
  await expect(starting).rejects.toThrow(/ended/);
}, 60_000);

test("defect 20: a service outlives that NATS is away for its second connection", async () => {
  const server = await nats();
  const port = await proxy(server.port, (nth) => nth === 2 || nth === 3);
  const orchestrator = await startWatcherProcess(
    `nats://127.0.0.1:${port}`,
    { HOLDFAST_APP: app },
    "orchestrator",
  );
  ended(orchestrator);
}, 60_000);

test("defect 20: a service waits for a server that is missing from the cluster, and starts when it is there", async () => {
  const cluster = await startCluster();
  undo.push(() => cluster.stop());
  const [first, second, third] = cluster.servers;
  if (!first || !second || !third) throw new Error("no three servers");
  await third.kill();
  const said: unknown[] = [];
  const env = { NATS_REPLICAS: "3", NATS_WAIT: "2m" };
  const watcher = await startWatcherProcess(
    `${first.url},${second.url}`,
    env,
    "watcher",
    ({ code, message }) => {
      if (code !== "too_few_servers") return;
      said.push(message);
      void third.restart();
    },
  );
  ended(watcher);
  expect(said).toEqual([
    expect.stringMatching(/^create stream .*; waiting for it, at most 120 s \(NATS_WAIT\)$/),
  ]);
}, 120_000);
