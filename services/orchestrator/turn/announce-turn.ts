/** Announces each turn to logs, metrics and dashboards. */
import { type InstanceState, softLimitEvents, type Turn } from "../../../shared/replay/index.ts";
import type { Runtime } from "../../../shared/runtime/index.ts";

type AnnounceDeps = Pick<Runtime, "clock" | "announce">;

export function announceCommitted(
  { clock, announce }: AnnounceDeps,
  { instanceId, execution, name = "", lastEventId }: Readonly<InstanceState>,
  { events }: Turn,
  { startedAt, appendAt }: { startedAt: number; appendAt: number },
): void {
  const done = clock.monotonic();
  announce({
    ...{ kind: "turn.committed", instanceId, execution, events: events.length },
    ...{ turnMs: done - startedAt, appendMs: done - appendAt },
  });
  if (events.some((event) => event.kind === "instance.started"))
    announce({ kind: "instance.started", instanceId, name, execution });
  if (lastEventId - events.length < softLimitEvents && lastEventId >= softLimitEvents)
    announce({ kind: "history.long", instanceId, events: lastEventId, limit: softLimitEvents });
}

export function announceClosed(
  { announce }: AnnounceDeps,
  state: Readonly<InstanceState>,
  now: number,
): void {
  const { instanceId, name = "", status, startedAt = now, endedAt = now, traceparent } = state;
  announce({
    kind: "instance.closed",
    instanceId,
    name,
    status,
    durationMs: endedAt - startedAt,
    traceparent,
  });
}
