/**
 * The thread beside the turns: renews the leases of this orchestrator, so that a turn that takes long does not lose the
 * partitions; and sees a turn that does not end, writes its instance down, ends the process (T9). One thread for both,
 * because a thread costs more memory than either of its duties.
 */
import { workerData } from "node:worker_threads";
import { Bucket, connectBus } from "../../shared/bus/index.ts";
// It serves the keeper on the other side as soon as it is loaded.
import "../../shared/leases/renewal-thread.ts";
import { silent } from "../../shared/runtime/index.ts";
import type { LeaseThreadSetup } from "./lease-thread.ts";
import { noteOf, runawayKey } from "./quarantine/runaway-note.ts";
import type { WatchdogSetup } from "./quarantine/runaways.ts";
import { TurnMark } from "./quarantine/turn-mark.ts";

async function watch({ connection, bucket, mark: buffer, limitMs, build }: WatchdogSetup): Promise<void> {
  const mark = new TurnMark(buffer);
  const bus = await connectBus({ ...connection, waitForServer: true, announce: silent });
  const notes = new Bucket(bus, bucket);
  const look = async () => {
    const turn = mark.get();
    const ms = turn ? performance.timeOrigin + performance.now() - turn.since : 0;
    if (turn && ms > limitMs) {
      // Without the note the next owner would run into the same turn.
      const outcome = await notes.put(runawayKey(turn.instanceId), noteOf(build, limitMs));
      if (outcome.kind === "written") process.kill(process.pid, "SIGKILL");
    }
    setTimeout(look, limitMs / 4);
  };
  await look();
}

await watch((workerData as LeaseThreadSetup).watchdog);
