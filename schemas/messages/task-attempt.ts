import { z } from "zod";
import { EventId } from "../ids.ts";

/** Identifies one attempt at a task. */
export const TaskAttempt = {
  execution: z.int().positive(),
  of: EventId,
  attempt: z.int().positive(),
};
