/** The endpoint `schedule.<id>`: one subject; the body names the operation. */
import { z } from "zod";
import { Overlap, ScheduleSpec } from "../../schemas/index.ts";
import { type CoreMessage, decode } from "../bus/index.ts";
import { HoldfastError } from "../errors/index.ts";
import type { Client } from "../sdk/index.ts";

const instant = z.union([z.int(), z.iso.datetime({ offset: true })]);

const Request = z.discriminatedUnion("do", [
  z.strictObject({
    do: z.literal("create"),
    spec: ScheduleSpec,
    replace: z.boolean().optional(),
    paused: z.boolean().optional(),
    note: z.string().max(4096).optional(),
  }),
  z.strictObject({ do: z.literal("update"), spec: ScheduleSpec }),
  z.strictObject({ do: z.literal("pause"), note: z.string().max(4096).optional() }),
  z.strictObject({ do: z.literal("resume") }),
  z.strictObject({ do: z.literal("trigger"), overlap: Overlap.optional() }),
  z.strictObject({ do: z.literal("backfill"), from: instant, to: instant, overlap: Overlap.optional() }),
  z.strictObject({ do: z.literal("delete") }),
  z.strictObject({ do: z.literal("describe") }),
]);

export async function answerSchedule(
  { schedules }: Client,
  id: string,
  message: CoreMessage,
): Promise<object> {
  if (message.body.length === 0) return schedules.describe(id);
  const request = decode(Request, message.body);
  if (request.kind === "invalid")
    throw new HoldfastError({ code: "invalid_request", message: `schedule: ${request.message}` });
  const { value } = request;
  const done = { scheduleId: id };
  switch (value.do) {
    case "create": {
      const { do: _, spec, ...options } = value;
      await schedules.create(id, spec, options);
      return done;
    }
    case "update":
      await schedules.update(id, value.spec);
      return done;
    case "pause":
      await schedules.pause(id, value.note);
      return done;
    case "resume":
      await schedules.resume(id);
      return done;
    case "trigger":
      return { ...done, ...(await schedules.trigger(id, value)) };
    case "backfill": {
      const { overlap } = value;
      const { times } = await schedules.backfill(id, { from: at(value.from), to: at(value.to), overlap });
      return { ...done, times: times.length };
    }
    case "delete":
      await schedules.delete(id);
      return done;
    case "describe":
      return schedules.describe(id);
  }
}

const at = (value: number | string): number => (typeof value === "number" ? value : Date.parse(value));
