// One Holdfast service as in production, `holdfast <service> --app <module>`, with the driver's IPC channel:
// the service's ready message becomes the driver's ready event.
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { now } from "../lib/worker.mjs";

const send = process.send.bind(process);
process.send = (m, ...rest) =>
  m?.ready ? send({ ev: "ready", t: now(), pid: process.pid }) : send(m, ...rest);
const app = path.join(path.dirname(fileURLToPath(import.meta.url)), "holdfast-app.mjs");
const bin = path.join(process.env.PEERS_HOLDFAST, "bin/holdfast.js");
process.argv = [
  process.argv[0],
  bin,
  process.env.PEERS_ROLE,
  ...(["orchestrator", "worker"].includes(process.env.PEERS_ROLE) ? ["--app", app] : []),
];
await import(pathToFileURL(bin).href);
