/**
 * The W3C trace context of an instance. Uses the OpenTelemetry API alone, which does nothing until a provider
 * is set. Not exported by this folder's index: threads import that and have no use for the API.
 *
 * One trace per instance: the `traceparent` sent by its starter, or else a trace derived from the instance's
 * id, so that every process finds the same one without a message.
 */
import { createHash } from "node:crypto";
import {
  context,
  createContextKey,
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  trace,
} from "@opentelemetry/api";

const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function parseTraceparent(text: string | undefined): SpanContext | undefined {
  const [, traceId, spanId, flags] = pattern.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const parsed: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(parsed) ? parsed : undefined;
}

export const formatTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, "0")}`;

/** The traceparent of the active span; undefined if there is none. */
export function activeTraceparent(): string | undefined {
  const active = trace.getSpanContext(context.active());
  return active && isSpanContextValid(active) ? formatTraceparent(active) : undefined;
}

/** False if no context manager is set: a context that is made active is then forgotten at once. */
function keepsContext(): boolean {
  const probe = ROOT_CONTEXT.setValue(probeKey, true);
  return context.with(probe, () => context.active()) === probe;
}
const probeKey = createContextKey("holdfast probe");

/** The root span of an instance that was started without a traceparent. */
export function derivedTrace(instanceId: string): SpanContext {
  const digest = createHash("sha256").update(`holdfast instance ${instanceId}`).digest("hex");
  return { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48), traceFlags: 1, isRemote: true };
}

/** Runs `act` so that spans begun inside belong to the instance's trace. */
export function insideTrace<T>(traceparent: string | undefined, instanceId: string, act: () => T): T {
  if (!keepsContext()) return act();
  const parent = parseTraceparent(traceparent) ?? derivedTrace(instanceId);
  return context.with(trace.setSpanContext(ROOT_CONTEXT, parent), act);
}
