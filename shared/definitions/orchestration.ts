import { Fault, messageOf } from "../errors/index.ts";
import { requireExactJson } from "../runtime/index.ts";
import { brand, requireName } from "./brand.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { OrchestrationContext } from "./orchestration-context.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** An orchestration as `defineOrchestration` returns it. */
export interface OrchestrationDefinition<I = unknown, O = unknown> {
  readonly [brand]: "orchestration";
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** The value of `ctx.state` when an instance begins. */
  readonly state?: Record<string, unknown> | undefined;
  /** Queries answered from `ctx.state` alone. */
  readonly queries?: Readonly<Record<string, StateQuery>> | undefined;
  /** Continues as new by itself after this many events. */
  readonly autoContinue?: number | undefined;
  run(ctx: OrchestrationContext<I>, input: I): Promise<O>;
}

type StateQuery = (state: never, input: never) => unknown;

/** An orchestration of any input and output. */
// biome-ignore lint/suspicious/noExplicitAny: a bag of definitions of every type; `unknown` is not assignable both ways
export type AnyOrchestration = OrchestrationDefinition<any, any>;

/**
 * Defines an orchestration: deterministic code that awaits activities, sessions, timers and signals, and
 * survives every crash.
 *
 * @example
 * ```ts
 * export const thumbnails = defineOrchestration("thumbnails", {
 *   input: z.array(z.string()),
 *   run: (ctx, urls) => Promise.all(urls.map((url) => ctx.run(resize, { url }))),
 * });
 * ```
 */
export function defineOrchestration<
  I = unknown,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
  S extends Record<string, unknown> = Record<string, unknown>,
>(
  name: string,
  spec: {
    input?: IS;
    output?: OS;
    /** `ctx.state` at the beginning: what JSON gives back as it was, so no dates, maps or instances of classes. */
    state?: S;
    /** Queries answered from `ctx.state`; the orchestration's code need not register them. */
    queries?: Record<string, (state: Readonly<S>, input: unknown) => unknown>;
    /**
     * Continues as new by itself after this many events, as soon as the code waits for nothing but signals,
     * updates and conditions. The next execution gets the same input, `ctx.state` and the unread signals. For
     * code that can begin anew from these.
     */
    autoContinue?: number;
    run(
      ctx: OrchestrationContext<IS extends Schema ? SchemaIn<IS> : I, S>,
      input: IS extends Schema ? SchemaOut<IS> : I,
    ): Promise<OS extends Schema ? SchemaIn<OS> : O>;
  },
): OrchestrationDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O> {
  refuseUnknownOptions(`orchestration "${name}"`, spec, orchestrationOptionNames);
  return {
    [brand]: "orchestration",
    name: requireName("orchestration", name),
    input: spec.input,
    output: spec.output,
    state: requireState(name, spec.state),
    queries: spec.queries,
    autoContinue: requireAutoContinue(name, spec.autoContinue),
    run: spec.run as OrchestrationDefinition["run"],
  } as OrchestrationDefinition<IS extends Schema ? SchemaIn<IS> : I, OS extends Schema ? SchemaOut<OS> : O>;
}

const orchestrationOptionNames = {
  input: true,
  output: true,
  state: true,
  queries: true,
  autoContinue: true,
  run: true,
} as const;

function requireState<S extends Record<string, unknown>>(name: string, state: S | undefined): S | undefined {
  if (state === undefined) return undefined;
  try {
    requireExactJson(state);
    return state;
  } catch (cause) {
    const message = `state of orchestration "${name}": ${messageOf(cause)}`;
    throw new Fault("config", { code: "not_serialisable", message, cause });
  }
}

function requireAutoContinue(name: string, events: number | undefined): number | undefined {
  if (events === undefined || (Number.isInteger(events) && events > 0)) return events;
  throw new Fault("config", {
    code: "invalid_option",
    message: `autoContinue of orchestration "${name}" is ${String(events)}: it must be a whole number of events above 0`,
  });
}
