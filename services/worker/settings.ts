/** The variables that a worker reads, each checked by itself. config.ts checks how they go together. */
import { z } from "zod";
import { tokenPattern, tokenRule } from "../../schemas/index.ts";
import { setting } from "../setting.ts";
import { longestNodeId } from "./identity.ts";

const { duration } = setting;
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const token = z.string().regex(tokenPattern, `must be ${tokenRule}`).meta({ rule: tokenRule });

/** Leaves room in the token for the incarnation of a start. */
const nodeIdRule = `1 to ${longestNodeId} characters of A-Z a-z 0-9 _ -`;
const nodeId = z
  .string()
  .regex(tokenPattern, `must be ${nodeIdRule}`)
  .max(longestNodeId, `must be ${nodeIdRule}`)
  .meta({ rule: nodeIdRule });

/** `a,b,c`, each a token. */
const tokens = setting.list
  .refine(
    (parts) => parts.length > 0 && parts.every((part) => tokenPattern.test(part)),
    `must be names separated by commas, each ${tokenRule}`,
  )
  .meta({ rule: "names, separated by commas" });

/** `vram=24,slots=2` */
const amounts = setting.list
  .refine(
    (parts) => parts.every((part) => /^[A-Za-z0-9_-]{1,128}=\d+(\.\d+)?$/.test(part)),
    "must be name=number, separated by commas",
  )
  .transform((parts): Record<string, number> => {
    const pairs = parts.map((part) => part.split("="));
    return Object.fromEntries(pairs.map(([name = "", amount]) => [name, Number(amount)]));
  })
  .meta({ rule: "name=number, separated by commas" });

export const workerSettings = {
  WORKER_NODE_ID: nodeId
    .optional()
    .describe("Name of this worker; each start of it counts as another worker. Made up when not set."),
  WORKER_RESOURCE_ID: token
    .optional()
    .describe(
      "The resource to which a session returns with its token: a GPU, a disk, a machine. One worker of a host at a time may have it. Default: the node id.",
    ),
  WORKER_BUILD_ID: z.string().max(128).default("dev").describe("Which build of your application this is."),
  WORKER_TAGS: tokens.optional().describe("Tags of this worker, which sessions may require, such as `gpu`."),
  WORKER_RESOURCES: amounts
    .optional()
    .describe(
      "Amounts of resources that sessions may require, such as `vram=24`. `gpu=2` also divides two GPUs among hosts.",
    ),

  WORKER_ACTIVITY_SLOTS: setting
    .wholeNumber(0, 100_000)
    .default(100)
    .describe("Plain activities running at a time. 0: none, a worker for sessions only."),
  WORKER_QUEUES: tokens
    .optional()
    .describe("Queues to take activities from. Default: every queue the application names."),
  WORKER_ACTIVITIES: tokens.optional().describe("Activities to run. Default: all of the application."),
  WORKER_ACK_WAIT: duration(second, 10 * minute)
    .default(10 * second)
    .describe("A task that its worker has not confirmed for so long goes to another worker."),
  WORKER_MAX_DELIVERIES: setting
    .wholeNumber(1, 1000)
    .default(5)
    .describe("A task delivered more often is poison: it fails and becomes a dead letter."),
  WORKER_SURPLUS_WAIT: duration(10, 10 * second)
    .default(500)
    .describe("A task that was pulled and found no free slot for so long is given back to its queue."),

  WORKER_MAX_SESSIONS: setting
    .wholeNumber(0, 100_000)
    .default(32)
    .describe("Sessions held at a time. 0: none, a worker for activities only."),
  WORKER_MAX_TOTAL_SESSIONS: setting
    .wholeNumber(1, 100_000)
    .optional()
    .describe(
      "Sessions held at a time by all workers of the installation together. Set it alike on all of them.",
    ),
  WORKER_CALL_SLOTS: setting
    .wholeNumber(1, 100_000)
    .default(100)
    .describe("Calls running at a time, over all sessions held."),
  WORKER_SESSION_TYPES: tokens
    .optional()
    .describe("Session types to hold. Default: all of the application, and bare sessions."),
  WORKER_MAX_PER_TYPE: amounts.optional().describe("Most sessions per type, such as `classifier=2`."),
  WORKER_LEASE_TTL: duration(second, hour, { wholeSeconds: true })
    .default(15 * second)
    .describe(
      "A holder that is silent for so long has lost its sessions. Default for types without a `leaseTtl` of their own.",
    ),
  WORKER_IDLE_TIMEOUT: duration(0, 30 * 24 * hour)
    .default(5 * minute)
    .describe(
      "A session without calls for so long becomes idle (its worker lets it go), if its type has a checkpoint, so that nothing is lost. 0: never. Default for types without an `idleTimeout` of their own.",
    ),
  WORKER_MAX_INIT: duration(second, 24 * hour)
    .default(10 * minute)
    .describe("Longest `init` of a session."),

  WORKER_DRAIN_TIMEOUT: duration(0, hour)
    .default(30 * second)
    .describe(
      "After a signal to stop, running work may finish for so long. The container's grace must be longer.",
    ),
  WORKER_STOP_GRACE: duration(0, 2 * hour)
    .optional()
    .describe(
      "How long the worker may take to stop before it is killed, if that is known. Set by `compose.yaml`.",
    ),
  WORKER_REGISTER_EVERY: duration(200, minute)
    .default(4 * second)
    .describe("How often the worker writes its entry in the register of workers."),
  WORKER_REGISTER_TTL: duration(2 * second, 10 * minute, { wholeSeconds: true })
    .default(15 * second)
    .describe("How long its entry lives without being written again."),
  WORKER_SUPERVISED: z
    .enum(["true", "false", "1", "0", "child"], "must be true or false")
    .meta({ rule: "true or false" })
    .default("false")
    .describe(
      "A small process starts the worker; if the worker dies, that process reports its sessions lost at once, not when their leases expire.",
    ),
  WORKER_FAULT: z.string().optional().describe("For fault tests: `point:count` kills the process there."),
};

export type WorkerSettings = z.infer<z.ZodObject<typeof workerSettings>>;
