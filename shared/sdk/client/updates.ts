/** Checks an update of a client, sends it, and reads the answer. */
import { madeUpdateId, requireToken } from "../../bus/index.ts";
import { type UpdateDefinition, validate } from "../../definitions/index.ts";
import { parseDuration, token } from "../../runtime/index.ts";
import { requireAnswer, sendUpdate } from "../instance/send-update.ts";
import { userFacing } from "../user-facing.ts";
import type { ClientParts, UpdateHandle, UpdateOptions } from "./client-options.ts";
import type { InboxSender } from "./inbox-sender.ts";

interface GivenUpdate {
  readonly instanceId: string;
  readonly update: UpdateDefinition | string;
  readonly input: unknown;
}

interface AnsweredUpdate {
  updateId: string;
  /** Undefined if the update is accepted and not over yet. */
  answer: unknown;
  over: boolean;
}

/** Returns the handler's answer. */
export async function runUpdate(
  parts: ClientParts,
  sender: InboxSender,
  given: GivenUpdate,
  options: UpdateOptions,
): Promise<unknown> {
  return (await askUpdate(parts, sender, given, options, "completed")).answer;
}

/** Returns once the update is accepted. */
export async function startUpdate(
  parts: ClientParts,
  sender: InboxSender,
  given: GivenUpdate,
  options: UpdateOptions,
): Promise<UpdateHandle> {
  const { updateId, answer, over } = await askUpdate(parts, sender, given, options, "accepted");
  const result = (more: Omit<UpdateOptions, "id">) =>
    runUpdate(parts, sender, given, { ...options, id: updateId, ...more });
  return { updateId, result: async (more = {}) => (over ? answer : result(more)) };
}

const askUpdate = (
  parts: ClientParts,
  sender: InboxSender,
  { instanceId, update, input }: GivenUpdate,
  { id, timeout = "30s", signal }: UpdateOptions,
  waitFor: "accepted" | "completed",
): Promise<AnsweredUpdate> =>
  userFacing(async () => {
    const definition = typeof update === "string" ? undefined : update;
    const name = requireToken("update name", typeof update === "string" ? update : update.name);
    requireToken("instance id", instanceId);
    const updateId = requireToken("update id", id ?? `${madeUpdateId}${token(parts.runtime.random)}`);
    const timeoutMs = parseDuration(timeout, "timeout");
    validate(definition?.input, input, "invalid_input", `input of update "${name}"`);
    const payload = await sender.wrap(input, instanceId);
    const answered = await sendUpdate(parts, {
      ...{ instanceId, name, updateId, payload, waitFor, timeoutMs, signal },
    });
    const stored = requireAnswer(answered);
    const value = stored && (await parts.payloads.unwrap(stored));
    const over = answered.status === "completed";
    const answer = over
      ? validate(definition?.output, value, "invalid_output", `answer of update "${name}"`)
      : undefined;
    return { updateId, over, answer };
  });
