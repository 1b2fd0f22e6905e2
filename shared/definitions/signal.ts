import { brand, requireName } from "./brand.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** A signal with a name and the type of its payload. Made by {@link defineSignal}. */
export interface SignalDefinition<In = unknown, Out = In> {
  readonly [brand]: "signal";
  readonly name: string;
  /** Checked by the sender and by the receiver. */
  readonly payload: Schema | undefined;
  /** For the compiler alone; undefined at run time. */
  readonly types?: { in: In; out: Out };
}

/** A signal of any payload. */
// biome-ignore lint/suspicious/noExplicitAny: signals of every type; `unknown` is not assignable both ways
export type AnySignal = SignalDefinition<any, any>;

/** The payload type for a sender; unknown for a plain name. */
export type SignalIn<S> = S extends SignalDefinition<infer In, infer _Out> ? In : unknown;

/** The payload type for the code that waits; unknown for a plain name. */
export type SignalOut<S> = S extends SignalDefinition<infer _In, infer Out> ? Out : unknown;

/**
 * A signal whose payload is checked on both sides. A payload that does not fit does not compile in
 * `client.signal(id, approved, { by: "ann" })`, and is refused at run time (`invalid_signal`). If a sender
 * bypassed the check, `ctx.waitForSignal(approved)` fails with the same error.
 *
 * @example
 * ```ts
 * export const approved = defineSignal("approved", { payload: z.object({ by: z.string() }) });
 * const { by } = await ctx.waitForSignal(approved);
 * ```
 */
export function defineSignal<S extends Schema>(
  name: string,
  spec: { payload: S },
): SignalDefinition<SchemaIn<S>, SchemaOut<S>>;
export function defineSignal<T = unknown>(name: string, spec?: { payload?: undefined }): SignalDefinition<T>;
export function defineSignal(name: string, spec: { payload?: Schema | undefined } = {}): SignalDefinition {
  refuseUnknownOptions(`signal "${name}"`, spec, { payload: true });
  return { [brand]: "signal", name: requireName("signal", name), payload: spec.payload };
}
