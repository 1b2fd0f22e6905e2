/** Entry of a process host: `process-main <setup as JSON> <pid of the worker>`. Ends with its worker, always. */
import { Worker } from "node:worker_threads";
import type { HostSetup } from "./carrier.ts";
import type { ToHost } from "./protocol.ts";
import { serveHost } from "./serve-host.ts";

const [setup = "{}", parent = "0"] = process.argv.slice(2);

/** A closed channel is noticed at once, but only by a loop that turns: a thread watches for the others. */
const watch = `
const { workerData } = require("node:worker_threads");
setInterval(() => {
  if (process.ppid !== workerData) process.kill(-process.pid, "SIGKILL");
}, 500);
`;
new Worker(watch, { eval: true, workerData: Number(parent) }).unref();
process.once("disconnect", () => process.kill(-process.pid, "SIGKILL"));

await serveHost(JSON.parse(setup) as HostSetup, {
  post: (message) => {
    process.send?.(message);
  },
  onMessage: (listener) => process.on("message", (message) => listener(message as ToHost)),
});
