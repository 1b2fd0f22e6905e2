/** Queries to running and finished orchestrations, and updates of running ones. */
import { z } from "zod";
import { InstanceId, MessageNames, Name } from "../../../schemas/index.ts";
import { messageOf } from "../../../shared/errors/index.ts";
import { Problem } from "../http/problem.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";

const tag = "orchestrations";
export const QueryAnswer = z.strictObject({ ok: z.literal(true), answer: z.unknown() });

export const UpdateResult = z.strictObject({
  ok: z.literal(true),
  updateId: z.string(),
  status: z.enum(["accepted", "completed"]),
  answer: z.unknown().optional(),
});

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
      runsCode: true,
      answer: QueryAnswer,
      reads: ({ params }) => params.id,
      async act({ params, query }) {
        const input = query.input === undefined ? undefined : parsed(query.input);
        const timeout = query.wait * 1000;
        const answer = await client.query(params.id, params.name, input, { timeout });
        return { ok: true as const, answer };
      },
    }),
    route({
      id: "getMessages",
      method: "get",
      path: "/api/instances/:id/messages",
      tag,
      summary: "Names of the queries and updates its code takes, and of the signals it waits for",
      role: "viewer",
      params: z.object({ id: InstanceId }),
      answer: MessageNames,
      reads: ({ params }) => params.id,
      act: ({ params }) => client.messages(params.id),
    }),
    route({
      id: "updateInstance",
      method: "post",
      path: "/api/instances/:id/update/:name",
      tag,
      summary: "Change the orchestration and wait for its answer. The same id again changes nothing.",
      role: "operator",
      params: z.object({ id: InstanceId, name: Name }),
      body: z.strictObject({
        input: z.unknown().optional(),
        id: Name.optional(),
        waitFor: z.enum(["accepted", "completed"]).default("completed"),
        wait: z.number().min(0.1).max(60).default(30),
      }),
      runsCode: true,
      answer: UpdateResult,
      audit: ({ params, body }) => ({
        target: params.id,
        with: { update: params.name, ...(body.id === undefined ? {} : { id: body.id }) },
      }),
      async act({ params, body, signal }) {
        const options = { id: body.id, timeout: body.wait * 1000, signal };
        const started = await client.startUpdate(params.id, params.name, body.input, options);
        const { updateId } = started;
        if (body.waitFor === "accepted") return { ok: true as const, updateId, status: "accepted" as const };
        const answer = await started.result({ timeout: options.timeout, signal });
        return { ok: true as const, updateId, status: "completed" as const, answer };
      },
    }),
  ];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = messageOf(error);
    throw new Problem({ status: 400, code: "not_json", message: `input is not JSON: ${why}` });
  }
}
