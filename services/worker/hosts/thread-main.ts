/** Entry of a thread host. */
import { parentPort, workerData } from "node:worker_threads";
import type { HostSetup } from "./carrier.ts";
import type { ToHost } from "./protocol.ts";
import { serveHost } from "./serve-host.ts";

const port = parentPort;
if (port) {
  await serveHost(workerData as HostSetup, {
    post: (message, transfer) => port.postMessage(message, transfer),
    onMessage: (listener) => port.on("message", (message: ToHost) => listener(message)),
  });
}
