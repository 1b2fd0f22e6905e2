/** Schedules: create, read, change. */
import { z } from "zod";
import { longestScheduleId, Overlap, ScheduleSpec, tokenPattern, tokenRule } from "../../../schemas/index.ts";
import { ScheduleView } from "../../../shared/sdk/internal.ts";
import { type RouteSpec, route } from "../http/route.ts";
import type { GatewayParts } from "./context.ts";

const tag = "schedules";
export const ScheduleList = z.strictObject({ rows: z.array(ScheduleView) });
export const ScheduleAccepted = z.strictObject({
  ok: z.literal(true),
  scheduleId: z.string(),
  /** After a trigger: the run, which begins if the overlap policy allows it. */
  instanceId: z.string().optional(),
  /** After a backfill: how many times it covers. */
  times: z.int().optional(),
});

const ofSchedule = z.object({
  id: z.string().max(longestScheduleId).regex(tokenPattern, `must be ${tokenRule}`),
});
const Note = z.strictObject({ note: z.string().max(4096).optional() });
const instant = z.union([z.int(), z.iso.datetime({ offset: true })]);
const at = (value: number | string) => (typeof value === "number" ? value : Date.parse(value));

export function scheduleRoutes({ client }: GatewayParts): RouteSpec[] {
  const accepted = (scheduleId: string) => ({ ok: true as const, scheduleId });
  const audit = ({ params }: { params: { id: string } }) => ({ target: params.id });
  const common = { method: "post", tag, role: "operator", params: ofSchedule } as const;
  const answered = { answer: ScheduleAccepted, status: 202, audit } as const;
  return [
    route({
      id: "listSchedules",
      method: "get",
      path: "/api/schedules",
      tag,
      summary: "Schedules with their next times",
      role: "viewer",
      query: z.object({ all: z.enum(["true", "false"]).default("false") }),
      answer: ScheduleList,
      lists: "schedules",
      act: async ({ query }) => ({ rows: await client.schedules.list({ all: query.all === "true" }) }),
    }),
    route({
      id: "getSchedule",
      method: "get",
      path: "/api/schedules/:id",
      tag,
      summary: "One schedule, its next ten times and its latest runs",
      role: "viewer",
      params: ofSchedule,
      answer: ScheduleView,
      reads: ({ params }) => params.id,
      act: ({ params }) => client.schedules.describe(params.id),
    }),
    route({
      ...common,
      ...answered,
      id: "createSchedule",
      path: "/api/schedules/:id",
      summary: "Create a schedule; with `replace` also change the one there is",
      body: z.strictObject({
        spec: ScheduleSpec,
        replace: z.boolean().optional(),
        paused: z.boolean().optional(),
        note: z.string().max(4096).optional(),
      }),
      async act({ params, body: { spec, ...options } }) {
        await client.schedules.create(params.id, spec, options);
        return accepted(params.id);
      },
    }),
    route({
      ...common,
      ...answered,
      id: "pauseSchedule",
      path: "/api/schedules/:id/pause",
      summary: "Start nothing until it is resumed",
      body: Note,
      async act({ params, body }) {
        await client.schedules.pause(params.id, body.note);
        return accepted(params.id);
      },
    }),
    route({
      ...common,
      ...answered,
      id: "resumeSchedule",
      path: "/api/schedules/:id/resume",
      summary: "Go on; what came while it was paused is left out",
      body: z.strictObject({}),
      async act({ params }) {
        await client.schedules.resume(params.id);
        return accepted(params.id);
      },
    }),
    route({
      ...common,
      ...answered,
      id: "triggerSchedule",
      path: "/api/schedules/:id/trigger",
      summary: "Run it now, beside its times",
      body: z.strictObject({ overlap: Overlap.optional() }),
      async act({ params, body }) {
        const { instanceId } = await client.schedules.trigger(params.id, body);
        return { ...accepted(params.id), instanceId };
      },
    }),
    route({
      ...common,
      ...answered,
      id: "backfillSchedule",
      path: "/api/schedules/:id/backfill",
      summary: "Run the times between two instants that were not run",
      body: z.strictObject({ from: instant, to: instant, overlap: Overlap.optional() }),
      async act({ params, body: { from, to, overlap } }) {
        const { times } = await client.schedules.backfill(params.id, { from: at(from), to: at(to), overlap });
        return { ...accepted(params.id), times: times.length };
      },
    }),
    route({
      ...common,
      ...answered,
      id: "deleteSchedule",
      path: "/api/schedules/:id/delete",
      summary: "Start nothing more, ever; what runs goes on",
      body: z.strictObject({}),
      async act({ params }) {
        await client.schedules.delete(params.id);
        return accepted(params.id);
      },
    }),
  ];
}
