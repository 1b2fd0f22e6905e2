/**
 * Several workers in one process, each with its own identity, connection and lease thread: a crowd that two cores can
 * bear. Built code, because a loader would be started in every thread.
 */
import { runWorker } from "../../../dist/services/worker/main.js";

const crew = Number(process.argv[2]);
await Promise.all(Array.from({ length: crew }, () => runWorker(process.env)));
process.exit(0);
