import type { InstanceStatus } from "../../../schemas/index.ts";
import type { CliConnection } from "../connection/client-command.ts";
import { LiveRegion } from "../terminal/live-region.ts";
import { NewEvents, newsLine } from "./event-lines.ts";
import { type FollowOptions, follow, type Snapshot } from "./follow.ts";
import { drawTree } from "./tree.ts";

/** Returns how the instance ended. */
export async function show(
  connection: CliConnection,
  instanceId: string,
  options: FollowOptions,
): Promise<InstanceStatus | "interrupted"> {
  const { out } = connection;
  const region = !out.json && out.stdout.isTTY === true ? new LiveRegion(out.stdout) : undefined;
  const news = new NewEvents();
  let last: Snapshot | undefined;
  let before: string | undefined;
  for await (const snapshot of follow(connection, instanceId, options)) {
    last = snapshot;
    if (region) {
      const { columns, rows } = region;
      region.draw(drawTree(snapshot.tree, { now: Date.now(), paint: out.paint, columns, rows }));
    } else {
      for (const event of news.since(snapshot.histories)) out.data(event, () => newsLine(event, out.paint));
      const parked = parkedLine(snapshot);
      if (parked !== undefined && parked !== before) out.note(parked);
      before = parked;
    }
  }
  return last?.ended ? last.tree.branch.status : "interrupted";
}

/** The line that says that the instance is parked: no event of its history says so. */
function parkedLine({ tree: { branch } }: Snapshot): string | undefined {
  if (branch.status !== "parked") return undefined;
  return `${branch.instanceId} is parked, it cannot go on: ${branch.note}`;
}
