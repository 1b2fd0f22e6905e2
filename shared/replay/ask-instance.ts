/** Asks the code of an instance between two turns: queries (Q1), and if it accepts an update (Q2). Records nothing. */
import { type MessageNames, messagesQuery } from "../../schemas/index.ts";
import { type Fault, isFault } from "../errors/index.ts";
import { writeJson } from "../runtime/index.ts";
import type { InboxMessage } from "./decide/inbox.ts";
import { endedInstance, neverRan, noInstance, parkedInstance, refusedBecause } from "./decide/refusals.ts";
import { type InstanceState, isEnded, type UpdateRecord } from "./fold/state.ts";
import type { Asked } from "./handles/messages/queries.ts";
import type { Considered } from "./handles/messages/updates.ts";
import type { PayloadAccess } from "./run/payload-access.ts";
import type { Runner } from "./run/runner.ts";

export interface AskedInstance {
  readonly state: InstanceState;
  /** Why its code cannot be run. */
  readonly parked: Fault | undefined;
  /** Undefined if its code was not loaded. */
  readonly runner: Runner | undefined;
  readonly payloads: PayloadAccess;
}

export type UpdateMessage = Extract<InboxMessage, { kind: "update" }>;

/** The update was received before. */
export interface KnownUpdate {
  readonly kind: "known";
  readonly record: UpdateRecord;
}

export function askQuery({ state, parked, runner }: AskedInstance, name: string, input: unknown): Asked {
  const { instanceId, status } = state;
  if (status === "absent" || status === "pending") return noInstance(instanceId);
  if (parked) return parkedInstance(instanceId, parked);
  if (!runner && isEnded(state)) return neverRan(instanceId, name);
  if (!runner) throw new Error(`${instanceId} was not loaded with its code`);
  if (name === messagesQuery) return { kind: "answered", json: writeJson(messageNames(state, runner)) };
  return runner.queries.ask(instanceId, runner.now, name, input);
}

/** An instance that has ended still answers queries, and takes no other messages. */
function messageNames(state: InstanceState, { queries, updates, signals }: Runner): MessageNames {
  const over = isEnded(state);
  return {
    queries: queries.names,
    updates: over ? [] : updates.names,
    signals: over ? [] : signals.awaitedNames(),
  };
}

export async function considerUpdate(
  { state, parked, runner, payloads }: AskedInstance,
  { updateId, payload, name }: UpdateMessage,
): Promise<Considered | KnownUpdate> {
  const { instanceId, status } = state;
  const record = state.updates.get(updateId);
  if (record) return { kind: "known", record };
  if (status === "absent" || status === "pending") return noInstance(instanceId);
  if (isEnded(state)) return endedInstance(instanceId, status);
  if (parked) return parkedInstance(instanceId, parked);
  if (!runner) throw new Error(`${instanceId} was not loaded with its code`);
  const older = runner.needs(2, "updates");
  if (older) return refusedBecause(older.code, older.message);
  try {
    const input = "json" in payload ? payload.json : await payloads.fetch(payload);
    return runner.updates.consider(instanceId, runner.now, name, input);
  } catch (error) {
    // The update's input is missing or damaged: the sender gets an error, and the instance continues.
    if (!isFault(error, "contract")) throw error;
    return refusedBecause(error.code, `input of update "${name}": ${error.message}`);
  }
}
