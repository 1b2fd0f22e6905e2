/** Sends a query to the owner of an instance, and repeats it while the partition changes owners. */
import { z } from "zod";
import { MessageNames, messagesQuery } from "../../../schemas/index.ts";
import { type Bus, decode, encode, type Subjects } from "../../bus/index.ts";
import { HoldfastError, TimeoutError } from "../../errors/index.ts";
import { type Runtime, sleep } from "../../runtime/index.ts";

const Reply = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), answer: z.unknown() }),
  z.object({
    ok: z.literal(false),
    error: z.object({ code: z.string(), message: z.string(), details: z.unknown().optional() }),
  }),
]);

/** An owner that replays a long history needs time; a dead owner is replaced within its lease. */
const attemptMs = 2_000;
const nobodyMs = 100;

export async function askQuery(
  { bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Runtime },
  instanceId: string,
  name: string,
  input: unknown,
  { timeoutMs }: { timeoutMs: number },
): Promise<unknown> {
  const { clock } = runtime;
  const deadline = clock.monotonic() + timeoutMs;
  const subject = names.query(instanceId, name);
  const body = input === undefined ? new Uint8Array() : encode(input);
  let wait = attemptMs;
  for (let nobody = false; ; wait *= 2) {
    const left = deadline - clock.monotonic();
    if (left <= 0) throw tooLate(instanceId, name, timeoutMs, nobody);
    const reply = await bus.request(subject, body, { timeoutMs: Math.ceil(Math.min(wait, left)) });
    if (reply.kind === "reply") return answerOf(reply.body, subject);
    nobody = reply.kind === "nobody";
    if (nobody) await sleep(clock, Math.min(nobodyMs, left));
  }
}

/**
 * Asks which messages the code of an instance takes. An orchestrator of an older version does not know the
 * question, and names the queries in its refusal.
 */
export async function askMessages(
  deps: Parameters<typeof askQuery>[0],
  instanceId: string,
  options: Parameters<typeof askQuery>[4],
): Promise<MessageNames> {
  try {
    return MessageNames.parse(await askQuery(deps, instanceId, messagesQuery, undefined, options));
  } catch (error) {
    const known = error instanceof HoldfastError && error.code === "unknown_query";
    const refusal = known ? RefusedNames.safeParse(error.details) : undefined;
    if (!refusal?.success) throw error;
    return { queries: refusal.data.names, updates: [], signals: [] };
  }
}

const RefusedNames = z.object({ names: z.array(z.string()) });

function answerOf(body: Uint8Array, subject: string): unknown {
  const reply = decode(Reply, body);
  if (reply.kind === "invalid")
    throw new HoldfastError({ code: "invalid_answer", message: `answer on ${subject}: ${reply.message}` });
  if (reply.value.ok) return reply.value.answer;
  throw new HoldfastError(reply.value.error);
}

const tooLate = (instanceId: string, name: string, ms: number, nobody: boolean) =>
  new TimeoutError({
    code: "query_timeout",
    message: `query "${name}" of instance ${instanceId} was not answered within ${ms} ms: ${
      nobody ? "no orchestrator is running" : "no orchestrator holds its partition, or its turn takes long"
    }`,
    retryable: true,
    details: { instanceId, query: name },
  });
