/**
 * Entry of a process host: `process-main <setup as JSON> <pid of the worker>`. It always ends with its
 * worker.
 */
import { startThread } from "../../../../shared/runtime/index.ts";
import { isWill } from "../../supervise/last-will.ts";
import type { HostSetup } from "../isolated/carrier.ts";
import type { ToHost } from "../isolated/protocol.ts";
import { serveHost } from "../isolated/serve-host.ts";
import type { ToParentWatch } from "./parent-watch.ts";

const [setup = "{}", parent = "0"] = process.argv.slice(2);

/** Longer than the thread takes to execute the worker's will. */
const mostMs = 6_000;

const watch = startThread(import.meta.url, "./parent-watch", { workerData: Number(parent) });
watch.unref();
const toWatch = (message: ToParentWatch) => watch.postMessage(message);
let serve: (message: ToHost) => void = () => undefined;
process.on("message", (message) => {
  if (isWill(message)) toWatch(message);
  else serve(message as ToHost);
});
process.once("disconnect", () => {
  toWatch({ kind: "channel closed" });
  // No user code runs on while its session is reported lost. The thread ends the process.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, mostMs);
  process.kill(-process.pid, "SIGKILL");
});

void serveHost(JSON.parse(setup) as HostSetup, {
  post: (message) => {
    process.send?.(message);
  },
  onMessage: (listener) => {
    serve = listener;
  },
});
