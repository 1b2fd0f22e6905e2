/**
 * Makes a span when a piece of work has ended, with its beginning, its end and its place in the instance's trace. Replay
 * announces nothing, so it makes no spans. Span names are in this file alone: the conventions for messaging
 * are still in development.
 */
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Announce, Clock, Happening } from "../runtime/index.ts";
import { derivedTrace, parseTraceparent } from "../runtime/trace.ts";
import type { ChosenIds } from "./trace-ids.ts";

interface Finished {
  name: string;
  kind: SpanKind;
  ms: number;
  attributes: Attributes;
  /** Why the work failed. */
  failed?: string | undefined;
}

export class Traces {
  readonly #tracer: Tracer;
  readonly #ids: ChosenIds;
  readonly #clock: Clock;

  constructor(tracer: Tracer, ids: ChosenIds, clock: Clock) {
    this.#tracer = tracer;
    this.#ids = ids;
    this.#clock = clock;
  }

  readonly listen: Announce = (happening) => {
    switch (happening.kind) {
      case "instance.closed":
        return this.#instance(happening);
      case "activity.ended":
        return this.#child(happening, {
          name: `activity ${happening.name}`,
          kind: SpanKind.CONSUMER,
          ms: happening.ms,
          attributes: {
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "messaging.destination.template": "activities.{queue}.{name}",
            "holdfast.activity.name": happening.name,
            "holdfast.attempt": happening.attempt,
            "holdfast.outcome": happening.outcome,
          },
          failed: happening.outcome === "completed" ? undefined : happening.outcome,
        });
      case "session.attached":
        return this.#child(happening, {
          name: `session init ${happening.type}`,
          kind: SpanKind.INTERNAL,
          ms: happening.initMs,
          attributes: {
            "holdfast.session.id": happening.sessionId,
            "holdfast.session.type": happening.type,
            "holdfast.session.epoch": happening.epoch,
            "holdfast.session.start": happening.warm ? "warm" : happening.restored ? "restored" : "cold",
          },
        });
      case "call.ended":
        return this.#child(happening, {
          name: `call ${happening.type}.${happening.name}`,
          kind: SpanKind.CONSUMER,
          ms: happening.ms,
          attributes: {
            "messaging.system": "nats",
            "messaging.operation.type": "process",
            "messaging.destination.template": "sessions.{worker}.{session}",
            "holdfast.session.id": happening.sessionId,
            "holdfast.session.type": happening.type,
            "holdfast.session.epoch": happening.epoch,
            "holdfast.outcome": happening.outcome,
          },
          failed: happening.outcome === "completed" ? undefined : happening.outcome,
        });
      default:
        return; // It has no duration of its own.
    }
  };

  /** If no client sent a trace, the root span gets the id its children already refer to. */
  #instance({ instanceId, name, status, durationMs, traceparent }: Of<"instance.closed">): void {
    const sent = parseTraceparent(traceparent);
    const finished: Finished = {
      name: `orchestration ${name}`,
      kind: SpanKind.INTERNAL,
      ms: durationMs,
      attributes: {
        "holdfast.instance.id": instanceId,
        "holdfast.orchestration.name": name,
        "holdfast.status": status,
      },
      failed: status === "completed" ? undefined : status,
    };
    if (sent) return this.#span(trace.setSpanContext(ROOT_CONTEXT, sent), finished);
    this.#ids.choose(derivedTrace(instanceId), () => this.#span(ROOT_CONTEXT, finished));
  }

  #child(
    about: { instanceId?: string | undefined; traceparent?: string | undefined },
    finished: Finished,
  ): void {
    const { instanceId } = about;
    const parent = parseTraceparent(about.traceparent) ?? (instanceId && derivedTrace(instanceId));
    if (!parent) return;
    if (instanceId) finished.attributes["holdfast.instance.id"] = instanceId;
    this.#span(trace.setSpanContext(ROOT_CONTEXT, parent), finished);
  }

  #span(parent: Context, { name, kind, ms, attributes, failed }: Finished): void {
    const endTime = this.#clock.now();
    const startTime = endTime - Math.max(0, ms);
    const span = this.#tracer.startSpan(name, { kind, attributes, startTime }, parent);
    if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed });
    span.end(endTime);
  }
}

type Of<K extends Happening["kind"]> = Extract<Happening, { kind: K }>;
