/**
 * Puts messages for an instance that does not exist, or has ended, into the dead letters, where people see
 * them.
 */
import { type Burial, bury, type Delivery } from "../../../shared/bus/index.ts";
import { Fault } from "../../../shared/errors/index.ts";
import type { InboxMessage, InstanceState } from "../../../shared/replay/index.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { changesNothing } from "../schedules/changes-nothing.ts";

export async function deadLetterIgnored(
  deps: EngineDeps,
  state: Readonly<InstanceState>,
  message: InboxMessage,
  delivery: Delivery,
  why: string,
): Promise<void> {
  const { instanceId: id, status } = state;
  if (message.kind === "signal" && why === "ended") {
    if (changesNothing(state, message)) return;
    const { name } = message;
    const reason = `instance ${id} has ended (${status})`;
    await buryOrThrow(deps, delivery, { what: "signal", id, code: "instance_ended", message: reason });
    deps.runtime.announce({ kind: "signal.unheard", instanceId: id, name, why: reason });
  } else if ((message.kind === "cancel" || message.kind === "terminate") && why === "unknown") {
    const reason = `there is no instance ${id}: it was not started`;
    const code = "instance_not_found";
    await buryOrThrow(deps, delivery, { what: message.kind, id, code, message: reason });
  }
}

/**
 * Without the server's answer the dead letter may not be stored: the turn is tried again, and nothing is
 * acknowledged.
 */
async function buryOrThrow(deps: EngineDeps, delivery: Delivery, burial: Burial): Promise<void> {
  if (await bury(deps, delivery, burial)) return;
  throw new Fault("transient", {
    code: "burial_failed",
    message: `${delivery.subject} could not be dead-lettered: no answer`,
  });
}
