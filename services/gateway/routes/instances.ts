/** Orchestrations: start, read, signal, cancel, terminate. */
import { z } from "zod";
import {
  FlowOptions,
  InstanceId,
  InstanceStatus,
  InstanceSummary,
  Name,
  terminalStatuses,
} from "../../../schemas/index.ts";
import { parseDuration } from "../../../shared/runtime/index.ts";
import { requirePayloads } from "../http/admission.ts";
import { Reply, type RouteSpec, route } from "../http/route.ts";
import { isCursor } from "../live/instance-index.ts";
import { InstanceRow } from "../live/rows.ts";
import type { GatewayParts } from "./context.ts";
import { HistoryPage, historyPage } from "./history.ts";

const tag = "orchestrations";
export const Accepted = z.strictObject({ ok: z.literal(true), instanceId: InstanceId });
export const InstanceList = z.strictObject({
  rows: z.array(InstanceRow),
  cursor: z.string().optional(),
  matching: z.int(),
});
/** Values as the user's code sees them; lists leave them out. */
export const InstanceView = InstanceSummary.omit({
  v: true,
  input: true,
  output: true,
  customStatus: true,
}).extend({
  input: z.unknown().optional(),
  output: z.unknown().optional(),
  customStatus: z.unknown().optional(),
});
export type InstanceView = z.infer<typeof InstanceView>;
export const InstanceResult = z.strictObject({
  /** False: still running when the wait was over. Ask again. */
  ended: z.boolean(),
  instance: InstanceView,
});
export const StreamPage = z.strictObject({
  items: z.array(
    z.strictObject({
      offset: z.int(),
      execution: z.int(),
      of: z.int(),
      attempt: z.int(),
      run: z.int(),
      index: z.int(),
      at: z.number(),
      chunk: z.unknown(),
    }),
  ),
  /** Pass it as `after` to continue after the last item. */
  offset: z.int(),
});
export type StreamPage = z.infer<typeof StreamPage>;
export const BlobValue = z.strictObject({ value: z.unknown() });

/** The instance starts after this delay. */
const Delay = z.union([z.int().nonnegative(), z.string().max(32)]);

const ofInstance = z.object({ id: InstanceId });
const Control = z.strictObject({ reason: z.string().max(4096).optional() });
const whole = (min: number, max: number, otherwise: number) =>
  z.coerce.number().int().min(min).max(max).default(otherwise);
const instant = z.coerce.number().int().nonnegative().optional();

const ListQuery = z.object({
  status: z
    .string()
    .transform((text) => text.split(","))
    .pipe(z.array(InstanceStatus))
    .optional()
    .meta({ description: `Comma-separated: ${InstanceStatus.options.join(", ")}` }),
  name: Name.optional(),
  prefix: z.string().max(128).optional(),
  text: z.string().max(200).optional(),
  session: z.string().max(128).optional(),
  parent: z.string().max(128).optional(),
  engine: z
    .enum(["true", "false"])
    .transform((text) => text === "true" || undefined)
    .optional()
    .meta({ description: "true: only the engine's own keepers of schedules, pools, keyed sessions, limits" }),
  startedAfter: instant,
  startedBefore: instant,
  limit: whole(1, 500, 50),
  cursor: z.string().refine(isCursor, "is not a cursor of this list").optional(),
});

export function instanceRoutes({ client, config, histories, live }: GatewayParts): RouteSpec[] {
  return [
    route({
      id: "startOrchestration",
      method: "post",
      path: "/api/orchestrations/:name",
      tag,
      summary: "Start an orchestration. The same id again changes nothing.",
      role: "operator",
      params: z.object({ name: Name }),
      body: z.strictObject({
        id: InstanceId.optional(),
        input: z.unknown().optional(),
        delay: Delay.optional(),
        flow: FlowOptions.optional(),
      }),
      answer: Accepted,
      status: 202,
      audit: ({ params, body }) => ({
        target: params.name,
        ...(body.id === undefined ? {} : { with: { id: body.id } }),
      }),
      async act({ params, body }) {
        const { id, delay, flow } = body;
        const delayMs = delay === undefined ? undefined : parseDuration(delay, "delay");
        const { instanceId } = await client.start(params.name, body.input, { id, delay: delayMs, flow });
        return { ok: true as const, instanceId: InstanceId.parse(instanceId) };
      },
    }),
    route({
      id: "startAgain",
      method: "post",
      path: "/api/instances/:id/start-again",
      tag,
      summary: "Start the same orchestration with the same input under another id; answers the new one",
      role: "operator",
      params: ofInstance,
      body: z.strictObject({ id: InstanceId.optional() }),
      answer: Accepted,
      status: 202,
      audit: ({ params, body }) => ({
        target: params.id,
        ...(body.id === undefined ? {} : { with: { id: body.id } }),
      }),
      async act({ params, body }) {
        const { instanceId } = await client.startAgain(params.id, { id: body.id });
        return { ok: true as const, instanceId: InstanceId.parse(instanceId) };
      },
    }),
    route({
      id: "listInstances",
      method: "get",
      path: "/api/instances",
      tag,
      summary: "List instances, latest first",
      role: "viewer",
      query: ListQuery,
      answer: InstanceList,
      lists: "orchestrations",
      act({ query: { limit, cursor, ...filter }, caller }) {
        const narrowed = { ...filter, names: caller.scope?.orchestrations, withoutErrors: !caller.payloads };
        const page = live.instances.page(narrowed, limit, cursor);
        return {
          rows: page.rows,
          matching: page.matching,
          ...(page.cursor === undefined ? {} : { cursor: page.cursor }),
        };
      },
    }),
    route({
      id: "getInstance",
      method: "get",
      path: "/api/instances/:id",
      tag,
      summary: "One instance",
      role: "viewer",
      params: ofInstance,
      answer: InstanceView,
      reads: ({ params }) => params.id,
      act: ({ params }) => client.status(params.id),
    }),
    route({
      id: "getHistory",
      method: "get",
      path: "/api/instances/:id/history",
      tag,
      summary: "Events of one execution, or with download=true the whole history as a file",
      role: "viewer",
      params: ofInstance,
      query: z.object({
        execution: z.coerce.number().int().positive().optional(),
        after: z.coerce.number().int().nonnegative().default(0),
        limit: whole(1, 20_000, 20_000),
        download: z.enum(["true", "false"]).optional(),
      }),
      answer: HistoryPage,
      reads: ({ params }) => params.id,
      async act({ params, query, caller }) {
        if (query.download === "true") {
          requirePayloads({ id: "getHistory with download" }, caller);
          return new Reply(await histories.file(params.id), {
            "content-disposition": `attachment; filename="${params.id}.history.json"`,
          });
        }
        return historyPage(await histories.read(params.id), query);
      },
    }),
    route({
      id: "getResult",
      method: "get",
      path: "/api/instances/:id/result",
      tag,
      summary: "The result; waits for it up to `wait` seconds",
      role: "viewer",
      params: ofInstance,
      query: z.object({ wait: z.coerce.number().min(0).max(60).default(0) }),
      answer: InstanceResult,
      reads: ({ params }) => params.id,
      async act({ params, query, signal }) {
        const instance =
          (await client.waitForEnd(params.id, query.wait * 1000, { signal })) ??
          (await client.status(params.id));
        return { ended: terminalStatuses.includes(instance.status), instance };
      },
    }),
    route({
      id: "getBlob",
      method: "get",
      path: "/api/instances/:id/blobs/:sha256",
      tag,
      summary: "A value of the history that was too big for a message",
      role: "viewer",
      params: z.object({ id: InstanceId, sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
      answer: BlobValue,
      reads: ({ params }) => params.id,
      valueOnly: true,
      async act({ params }) {
        return { value: await histories.blob(params.id, params.sha256) };
      },
    }),
    route({
      id: "getStream",
      method: "get",
      path: "/api/instances/:id/stream",
      tag,
      summary:
        "What its work has written with ctx.stream.write so far, from an offset on. With Accept: text/event-stream it goes on live until the instance ends (docs/streaming.md).",
      role: "viewer",
      params: ofInstance,
      query: z.object({
        after: z.coerce.number().int().nonnegative().default(0),
        limit: whole(1, 5_000, 1_000),
      }),
      answer: StreamPage,
      reads: ({ params }) => params.id,
      async act({ params, query, signal }) {
        const items: StreamPage["items"] = [];
        let bytes = 0;
        for await (const item of client.stream(params.id, { after: query.after, follow: false, signal })) {
          items.push(item);
          bytes += JSON.stringify(item.chunk)?.length ?? 0;
          if (items.length >= query.limit || bytes >= config.maxHistoryBytes) break;
        }
        return { items, offset: items.at(-1)?.offset ?? query.after };
      },
    }),
    route({
      id: "signalInstance",
      method: "post",
      path: "/api/instances/:id/signal/:event",
      tag,
      summary: "Send a signal. It is kept until the orchestration asks for it, also before its start.",
      role: "operator",
      params: z.object({ id: InstanceId, event: Name }),
      body: z.strictObject({ payload: z.unknown().optional(), messageId: z.string().optional() }),
      answer: Accepted,
      status: 202,
      audit: ({ params }) => ({ target: params.id, with: { event: params.event } }),
      async act({ params, body }) {
        await client.signal(params.id, params.event, body.payload, { messageId: body.messageId });
        return { ok: true as const, instanceId: params.id };
      },
    }),
    ...(["cancel", "terminate"] as const).map((verb) =>
      route({
        id: `${verb}Instance`,
        method: "post",
        path: `/api/instances/:id/${verb}`,
        tag,
        summary:
          verb === "cancel"
            ? "Ask the orchestration to stop; its code may clean up"
            : "End the orchestration at once; its code cannot clean up",
        role: "operator",
        params: ofInstance,
        body: Control,
        answer: Accepted,
        status: 202,
        audit: ({ params, body }) => ({
          target: params.id,
          ...(body.reason === undefined ? {} : { with: { reason: body.reason } }),
        }),
        async act({ params, body }) {
          await client[verb](params.id, body.reason);
          return { ok: true as const, instanceId: params.id };
        },
      }),
    ),
  ];
}
