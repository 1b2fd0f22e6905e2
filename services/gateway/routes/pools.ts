/** Pools of sessions: list, resize, pause, resume, call. */
import { z } from "zod";
import { Name } from "../../../schemas/index.ts";
import type { PoolOptions } from "../../../shared/definitions/index.ts";
import { poolShape } from "../../../shared/sdk/internal.ts";
import { type RouteSpec, route } from "../http/route.ts";
import { usersText } from "../security/index.ts";
import type { GatewayParts } from "./context.ts";
import { CallResult } from "./keyed.ts";

const tag = "sessions";
export const PoolRow = poolShape.extend({ error: usersText(z.string()).optional() });
export type PoolRow = z.infer<typeof PoolRow>;
export const PoolList = z.strictObject({ rows: z.array(PoolRow) });
export const PoolAccepted = z.strictObject({ ok: z.literal(true), poolId: z.string() });

const ofPool = z.object({ id: Name });

export function poolRoutes({ client }: GatewayParts): RouteSpec[] {
  const audit = ({ params }: { params: { id: string } }) => ({ target: params.id });
  const common = { method: "post", tag, role: "operator", params: ofPool } as const;
  const answered = { answer: PoolAccepted, status: 202, audit } as const;
  return [
    route({
      id: "listPools",
      method: "get",
      path: "/api/pools",
      tag,
      summary: "Pools of sessions and their sizes",
      role: "viewer",
      answer: PoolList,
      lists: "pools",
      act: async () => ({ rows: await client.pools.list() }),
    }),
    route({
      ...common,
      ...answered,
      id: "resizePool",
      path: "/api/pools/:id/resize",
      summary: "Change the size of a pool, until its declaration changes",
      body: z.strictObject({ min: z.int().min(0), max: z.int().min(1) }),
      async act({ params, body }) {
        await client.pools.resize(params.id, body);
        return { ok: true as const, poolId: params.id };
      },
    }),
    ...(["pause", "resume", "forget"] as const).map((verb) =>
      route({
        ...common,
        ...answered,
        id: `${verb}Pool`,
        path: `/api/pools/:id/${verb}`,
        summary: {
          pause: "Let its members go; its calls wait until it is resumed",
          resume: "Give a paused pool its members again",
          forget: "Withdraw the declaration of a pool that is no longer deployed",
        }[verb],
        body: z.strictObject({}),
        async act({ params }) {
          await client.pools[verb](params.id);
          return { ok: true as const, poolId: params.id };
        },
      }),
    ),
    route({
      id: "callPool",
      method: "post",
      path: "/api/pools/:type/calls/:call",
      tag,
      summary: "Call a pool: a free member takes the call. Closing the connection cancels it.",
      role: "operator",
      params: z.object({ type: Name, call: Name }),
      body: z.strictObject({
        input: z.unknown(),
        options: z.record(z.string(), z.unknown()).default({}).meta({ description: "As of ctx.usePool" }),
        wait: z.number().min(0.1).max(3600).default(30),
      }),
      runsCode: true,
      answer: CallResult,
      audit: ({ params }) => ({ target: params.type, with: { call: params.call } }),
      async act({ params, body, signal }) {
        const pool = client.pool(params.type, body.options as PoolOptions);
        const output = await pool.call(params.call, body.input, { timeout: body.wait * 1000, signal });
        return { ok: true as const, output };
      },
    }),
  ];
}
