/** Questions to running and finished orchestrations. */
import { z } from "zod";
import { InstanceId, Name } from "../../../schemas/index.ts";
import { Problem } from "../http/problem.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";

const tag = "orchestrations";
export const QueryAnswer = z.strictObject({ ok: z.literal(true), answer: z.unknown() });

export function messageRoutes({ client }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "queryInstance",
      method: "get",
      path: "/api/instances/:id/query/:name",
      tag,
      summary: "Ask the orchestration's code a question; changes nothing, also after its end",
      role: "viewer",
      params: z.object({ id: InstanceId, name: Name }),
      query: z.object({
        input: z.string().optional().meta({ description: "Input of the query as JSON" }),
        wait: z.coerce.number().min(0.1).max(60).default(10),
      }),
      answer: QueryAnswer,
      async act({ params, query }) {
        const input = query.input === undefined ? undefined : parsed(query.input);
        const timeout = query.wait * 1000;
        const answer = await client.query(params.id, params.name, input, { timeout });
        return { ok: true as const, answer };
      },
    }),
  ];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Problem({ status: 400, code: "not_json", message: `input is not JSON: ${why}` });
  }
}
