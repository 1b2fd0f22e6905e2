/** A worker in a process of its own, for tests that kill it. */
import { runWorker } from "../../../services/worker/main.ts";

await runWorker(process.env).then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
