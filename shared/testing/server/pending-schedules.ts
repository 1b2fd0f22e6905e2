/** Durable timers and retries that wait on the server, whose calendar is the real one. */
import {
  type Bus,
  type Headers,
  headerNames,
  type StoredMessage,
  type Subjects,
  scheduledFor,
} from "../../bus/index.ts";

interface Pending {
  message: StoredMessage;
  /** By the server's clock. */
  at: number;
  target: string;
}

const ofTheServer = /^Nats-/;

export async function pendingSchedules(bus: Bus, names: Subjects): Promise<Pending[]> {
  const found: Pending[] = [];
  for (const [stream, filter] of [
    [names.timersStream, names.allTimers],
    [names.activitiesStream, names.allRetries],
    [names.sessionsStream, names.allSessionRetries],
  ] as const)
    for (const message of (await bus.read(stream, filter)) ?? []) {
      const at = scheduledFor(message.headers);
      const target = message.headers[headerNames.scheduleTarget];
      if (at !== undefined && target !== undefined) found.push({ message, at, target });
    }
  return found;
}

/**
 * Makes each schedule due this much earlier. A schedule that fires meanwhile is not written again, because of
 * the fence.
 */
export async function hasten(bus: Bus, pending: readonly Pending[], ms: number): Promise<void> {
  await Promise.all(
    pending.map(({ message, at, target }) =>
      bus.publish(message.subject, message.body, {
        headers: own(message.headers),
        schedule: { at: at - ms, target },
        expectLastSeq: message.seq,
      }),
    ),
  );
}

const own = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofTheServer.test(name)));
