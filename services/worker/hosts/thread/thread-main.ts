/** Entry of a thread host. */
import { parentPort, workerData } from "node:worker_threads";
import type { HostSetup } from "../isolated/carrier.ts";
import type { ToHost } from "../isolated/protocol.ts";
import { serveHost } from "../isolated/serve-host.ts";

const port = parentPort;
if (port) {
  void serveHost(workerData as HostSetup, {
    post: (message, transfer) => port.postMessage(message, transfer),
    onMessage: (listener) => port.on("message", (message: ToHost) => listener(message)),
  });
}
