/** Flow control: which keys have waiting starts. */
import { z } from "zod";
import { flowOrchestration } from "../../../schemas/index.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";

const WaitingKey = z.object({
  key: z.string(),
  /** Rounded down to 1, 2, 5, 10, 20, 50, …: updated when the rounded number changes. */
  waiting: z.int(),
});
export const WaitingKeys = z.strictObject({ rows: z.array(WaitingKey) });

const KeeperStatus = z.object({ waiting: z.array(WaitingKey) });

export function flowRoutes({ client }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "listWaitingKeys",
      method: "get",
      path: "/api/flow",
      tag: "orchestrations",
      summary: "Keys of flow control whose starts wait, and about how many",
      role: "viewer",
      answer: WaitingKeys,
      async act() {
        const keepers = await client.list({ name: flowOrchestration, limit: Number.POSITIVE_INFINITY });
        const rows = keepers.flatMap(
          ({ customStatus }) => KeeperStatus.safeParse(customStatus).data?.waiting ?? [],
        );
        return { rows: rows.sort((a, b) => b.waiting - a.waiting) };
      },
    }),
  ];
}
