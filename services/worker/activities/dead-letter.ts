/** What cannot be worked on is set aside with its reason, then acknowledged: it never blocks those behind it. */
import { bury, type Delivery } from "../../../shared/bus/index.ts";
import { isFault } from "../../../shared/errors/index.ts";
import type { WorkerDeps } from "../deps.ts";

const againMs = 1_000;

/** Acknowledges only what is safely in `DEAD`; otherwise the message comes again. */
export async function deadLetter(
  deps: Pick<WorkerDeps, "bus" | "names" | "runtime">,
  message: Delivery,
  id: string,
  { code, message: why }: { code: string; message: string },
): Promise<void> {
  try {
    if (await bury(deps, message, { what: "activity", id, code, message: why })) message.ack();
    else message.nak(againMs);
  } catch (error) {
    message.nak(againMs);
    deps.runtime.announce({
      kind: "fault",
      where: "worker.dead_letter",
      code: isFault(error) ? error.code : "dead_letter",
      message: error instanceof Error ? error.message : String(error),
      error,
    });
  }
}
