/** I9, I17: laws of an installation that has nothing more to do. */
import { headerNames } from "../bus/index.ts";
import { sleep } from "../runtime/index.ts";
import type { Installation } from "./installation.ts";
import type { LiveBounds, LiveInstance } from "./live/instances.ts";
import type { Findings } from "./report.ts";

export async function checkQuiet(
  installation: Installation,
  live: readonly LiveInstance[],
  { looks, settleMs }: LiveBounds,
  findings: Findings,
): Promise<void> {
  const { names } = installation;
  for (const { instanceId } of live) {
    if (!isKeeper(instanceId))
      findings.violation("I17", instanceId, "it is still running, though nothing should be");
  }
  const queues = [
    names.inboxStream,
    names.activitiesStream,
    names.claimsStream,
    names.sessionsStream,
    names.asideStream,
  ];
  for (const queue of queues) {
    let left: string[] = [];
    for (let look = 1; look <= looks; look++) {
      left = await leftIn(installation, queue);
      if (left.length === 0) break;
      if (look < looks) await sleep(installation.clock, settleMs);
    }
    if (left.length > 0)
      findings.violation(
        "I9",
        undefined,
        `${queue} is not empty: ${left.join(", ")}${left.length < named ? "" : " …"}`,
      );
  }
}

const named = 5;

/**
 * The first few messages left. A schedule that no instance waits for is removed by itself when it fires. Work for a
 * worker that is gone is removed some time after its death, and judged as an orphan (orphans.ts).
 */
async function leftIn(installation: Installation, queue: string): Promise<string[]> {
  const { names } = installation;
  const alive = new Set<string>((await installation.workers()).map(({ workerId }) => workerId));
  const left: string[] = [];
  for await (const { subject, seq, headers } of installation.messages(queue)) {
    if (headers[headerNames.schedule] !== undefined) continue;
    const work = names.parseSessionWork(subject);
    if (work && !alive.has(work.workerId)) continue;
    left.push(`${names.published(subject)} (${seq})`);
    if (left.length === named) break;
  }
  return left;
}

/** True for keepers of pools, schedules and limits, which live as long as they are wanted. */
const isKeeper = (instanceId: string): boolean => /^(pool|schedule|flow)-/.test(instanceId);
