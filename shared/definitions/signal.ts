import { brand, requireName } from "./brand.ts";
import { refuseUnknownOptions } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** A signal with a name and the type of its payload. Made by {@link defineSignal}. */
export interface SignalDefinition<In = unknown, Out = In> {
  readonly [brand]: "signal";
  readonly name: string;
  /** Checked where it is sent and where it is received. */
  readonly payload: Schema | undefined;
  /** Not there at run time. */
  readonly types?: { in: In; out: Out };
}

// biome-ignore lint/suspicious/noExplicitAny: signals of every type; `unknown` is not assignable both ways
export type AnySignal = SignalDefinition<any, any>;

/** What a sender gives; unknown for a plain name. */
export type SignalIn<S> = S extends SignalDefinition<infer In, infer _Out> ? In : unknown;

/** What the code that waits gets; unknown for a plain name. */
export type SignalOut<S> = S extends SignalDefinition<infer _In, infer Out> ? Out : unknown;

/**
 * A signal whose payload is checked on both sides: `client.signal(id, approved, { by: "ann" })` does not compile, and is
 * refused at run time (`invalid_signal`), where the payload does not fit; so is `ctx.waitForSignal(approved)` where
 * somebody sent something else.
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
