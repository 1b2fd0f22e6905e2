/**
 * Sends an update and waits for its answer. The answer is a plain message and may be lost with a connection,
 * an owner or the server: the client then sends the update again under the same id, and it is applied once
 * (Q2).
 */
import { needsHeader, type Payload, UpdateAnswer, updateIdHeader } from "../../../schemas/index.ts";
import {
  type Bus,
  type CoreMessage,
  decode,
  encode,
  type Headers,
  headerNames,
  publishOrThrow,
  type Subjects,
} from "../../bus/index.ts";
import { CancelledError, fromFailure, HoldfastError, isFault, TimeoutError } from "../../errors/index.ts";
import type { Runtime } from "../../runtime/index.ts";

interface UpdateRequest {
  instanceId: string;
  name: string;
  updateId: string;
  payload: Payload | undefined;
  waitFor: "accepted" | "completed";
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

const firstWaitMs = 2_000;
const longestWaitMs = 30_000;

export async function sendUpdate(
  { bus, names, runtime }: { bus: Bus; names: Subjects; runtime: Runtime },
  request: UpdateRequest,
): Promise<UpdateAnswer> {
  const { instanceId, updateId, waitFor, timeoutMs, signal } = request;
  const { clock } = runtime;
  const deadline = clock.monotonic() + timeoutMs;
  let latest: UpdateAnswer | undefined;
  let wake: () => void = () => undefined;
  const onAnswer = ({ body }: CoreMessage) => {
    const answer = decode(UpdateAnswer, body);
    if (answer.kind === "invalid") return;
    latest = answer.value;
    wake();
  };
  const isOver = () => latest !== undefined && (latest.status !== "accepted" || waitFor === "accepted");
  const nap = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = clock.after(ms, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  const onAbort = () => wake();
  signal?.addEventListener("abort", onAbort, { once: true });
  // Subscribed before the update is sent, on the same connection: no answer can come earlier.
  const subscription = await bus.subscribe(
    names.answer(instanceId, updateId),
    { unconfirmed: true },
    onAnswer,
  );
  try {
    for (let wait = firstWaitMs; ; wait = Math.min(longestWaitMs, wait * 2)) {
      await send(bus, names, request, clock.now());
      const resendAt = clock.monotonic() + wait;
      for (;;) {
        if (latest && isOver()) return latest;
        if (signal?.aborted) throw new CancelledError(`waiting for update ${updateId} was given up`);
        const now = clock.monotonic();
        if (now >= deadline) throw tooLate(request, latest !== undefined);
        if (now >= resendAt) break;
        await nap(Math.min(resendAt, deadline) - now);
      }
    }
  } finally {
    signal?.removeEventListener("abort", onAbort);
    void subscription.stop();
  }
}

/** Each try has a message id of its own: the server must not drop the second as a duplicate of the first. */
async function send(bus: Bus, names: Subjects, request: UpdateRequest, at: number): Promise<void> {
  const { instanceId, name, updateId, payload } = request;
  const headers: Headers = {
    [updateIdHeader]: updateId,
    // A process that does not know updates leaves the message for one that does (E1).
    [needsHeader]: "2",
    ...(payload && "blob" in payload ? { [headerNames.blob]: JSON.stringify(payload.blob) } : {}),
  };
  const body = payload && "json" in payload ? encode(payload.json) : new Uint8Array();
  try {
    const msgId = `update-${instanceId}-${updateId}-${at}`;
    await publishOrThrow(bus, { subject: names.update(instanceId, name), body, msgId, headers });
  } catch (error) {
    // The update may not be stored: it is sent again if no answer comes.
    const passes = isFault(error, "transient") || (error instanceof HoldfastError && error.retryable);
    if (!passes) throw error;
  }
}

/** Returns the answer's value, or throws the error it carries. */
export function requireAnswer({ status, answer, error }: UpdateAnswer): Payload | undefined {
  if (error && (status === "failed" || status === "refused")) throw fromFailure(error);
  return answer;
}

const tooLate = ({ instanceId, name, updateId, timeoutMs, waitFor }: UpdateRequest, accepted: boolean) =>
  new TimeoutError({
    code: "update_timeout",
    message: `update "${name}" of instance ${instanceId} was not ${accepted ? "completed" : waitFor} within ${timeoutMs} ms; ask again with id ${updateId}`,
    retryable: true,
    details: { instanceId, update: name, updateId, accepted },
  });
