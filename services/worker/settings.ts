/** The variables a worker understands, each checked by itself. How they go together is checked in config.ts. */
import { z } from "zod";
import { tokenPattern, tokenRule } from "../../schemas/index.ts";
import { isFault } from "../../shared/errors/index.ts";
import { parseDuration } from "../../shared/runtime/index.ts";
import { setting } from "../config.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const token = z.string().regex(tokenPattern, `must be ${tokenRule}`);

/** `a,b,c`, each a token. */
const tokens = setting.list.refine(
  (parts) => parts.length > 0 && parts.every((part) => tokenPattern.test(part)),
  `must be names separated by commas, each ${tokenRule}`,
);

/** `vram=24,slots=2` */
const amounts = setting.list
  .refine(
    (parts) => parts.every((part) => /^[A-Za-z0-9_-]{1,128}=\d+(\.\d+)?$/.test(part)),
    "must be name=number, separated by commas",
  )
  .transform((parts): Record<string, number> => {
    const pairs = parts.map((part) => part.split("="));
    return Object.fromEntries(pairs.map(([name = "", amount]) => [name, Number(amount)]));
  });

/** `250ms 5s 2m 1h`, or milliseconds. */
const duration = (minMs: number, maxMs: number, { wholeSeconds = false } = {}) =>
  z.string().transform((text, context) => {
    const ms = milliseconds(text);
    const rule =
      ms === undefined
        ? 'must be a duration such as "250ms", "5s" or "2m"'
        : ms < minMs || ms > maxMs
          ? `must be a duration from ${minMs} ms to ${maxMs} ms`
          : wholeSeconds && ms % second !== 0
            ? "must be whole seconds"
            : undefined;
    if (ms !== undefined && rule === undefined) return ms;
    context.addIssue({ code: "custom", message: rule ?? "is not a duration" });
    return z.NEVER;
  });

function milliseconds(text: string): number | undefined {
  try {
    return parseDuration(text, "duration");
  } catch (error) {
    if (isFault(error, "contract")) return undefined;
    throw error;
  }
}

export const workerSettings = {
  WORKER_NODE_ID: token.optional(),
  WORKER_RESOURCE_ID: token.optional(),
  WORKER_BUILD_ID: z.string().max(128).default("dev"),
  WORKER_TAGS: tokens.optional(),
  WORKER_RESOURCES: amounts.optional(),

  WORKER_ACTIVITY_SLOTS: setting.wholeNumber(0, 100_000).default(100),
  WORKER_QUEUES: tokens.optional(),
  WORKER_ACTIVITIES: tokens.optional(),
  WORKER_ACK_WAIT: duration(second, 10 * minute).default(10 * second),
  WORKER_MAX_DELIVERIES: setting.wholeNumber(1, 1000).default(5),
  WORKER_SURPLUS_WAIT: duration(10, 10 * second).default(500),

  WORKER_MAX_SESSIONS: setting.wholeNumber(0, 100_000).default(32),
  WORKER_CALL_SLOTS: setting.wholeNumber(1, 100_000).default(100),
  WORKER_SESSION_TYPES: tokens.optional(),
  WORKER_MAX_PER_TYPE: amounts.optional(),
  WORKER_LEASE_TTL: duration(second, hour, { wholeSeconds: true }).default(15 * second),
  WORKER_IDLE_TIMEOUT: duration(0, 30 * 24 * hour).default(5 * minute),
  WORKER_MAX_INIT: duration(second, 24 * hour).default(10 * minute),

  WORKER_DRAIN_TIMEOUT: duration(0, hour).default(30 * second),
  WORKER_REGISTER_EVERY: duration(200, minute).default(4 * second),
  WORKER_REGISTER_TTL: duration(2 * second, 10 * minute, { wholeSeconds: true }).default(15 * second),
};

export type WorkerSettings = z.infer<z.ZodObject<typeof workerSettings>>;
