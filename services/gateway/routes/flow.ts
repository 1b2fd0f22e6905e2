/** Flow control: which keys have waiting starts. */
import { z } from "zod";
import { FlowWaiting, flowOrchestration, flowWaitingQuery } from "../../../schemas/index.ts";
import type { Client } from "../../../shared/sdk/index.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";

export const WaitingKeys = z.strictObject({ rows: FlowWaiting });

/** The custom status of a keeper: rounded, and written once a second at most. */
const KeeperStatus = z.object({ waiting: FlowWaiting });
const patience = "1s";

export function flowRoutes({ client }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "listWaitingKeys",
      method: "get",
      path: "/api/flow",
      tag: "orchestrations",
      summary: "Keys of flow control whose starts wait, and how many",
      role: "viewer",
      answer: WaitingKeys,
      async act() {
        const keepers = await client.list({ name: flowOrchestration, limit: Number.POSITIVE_INFINITY });
        const rows = (await Promise.all(keepers.map((keeper) => waitingOf(client, keeper)))).flat();
        return { rows: rows.sort((a, b) => b.waiting - a.waiting) };
      },
    }),
  ];
}

/** Asks the keeper; if it does not answer, takes the status that it wrote last. */
async function waitingOf(
  client: Client,
  { instanceId, customStatus }: { instanceId: string; customStatus?: unknown },
): Promise<FlowWaiting> {
  const answer = await client
    .query(instanceId, flowWaitingQuery, undefined, { timeout: patience })
    .catch(() => undefined);
  const now = FlowWaiting.safeParse(answer);
  return now.success ? now.data : (KeeperStatus.safeParse(customStatus).data?.waiting ?? []);
}
