/**
 * The thread beside the turns. It renews the leases of this orchestrator, so that a long turn does not cost
 * it the partitions. It also notices a turn that does not end, writes a note about its instance, and kills
 * the process (T9). One thread does both, because a thread costs more memory than either duty.
 */
import { Bucket, connectBus } from "../../shared/bus/index.ts";
// Importing this module starts the renewal service for the lease keeper on the main thread.
import { setup } from "../../shared/leases/renewal-thread.ts";
import { silent } from "../../shared/runtime/index.ts";
import type { LeaseThreadSetup } from "./lease-thread.ts";
import { noteOf, runawayKey } from "./quarantine/runaway-note.ts";
import type { WatchdogSetup } from "./quarantine/runaways.ts";
import { TurnMark } from "./quarantine/turn-mark.ts";
import { TurnWatch } from "./quarantine/turn-watch.ts";

async function watch({ connection, bucket, mark: buffer, limitMs, build }: WatchdogSetup): Promise<void> {
  const mark = new TurnMark(buffer);
  const bus = await connectBus({ ...connection, waitForServer: true, announce: silent });
  const notes = new Bucket(bus, bucket);
  const turns = new TurnWatch(limitMs);
  const look = async () => {
    const turn = turns.look(mark.get(), performance.timeOrigin + performance.now());
    if (turn) {
      // Without the note the next owner would run the same turn again.
      const outcome = await notes.put(runawayKey(turn.instanceId), noteOf(build, limitMs));
      if (outcome.kind === "written") process.kill(process.pid, "SIGKILL");
    }
    setTimeout(look, turns.everyMs);
  };
  await look();
}

void setup.then((given) => watch((given as LeaseThreadSetup).watchdog));
