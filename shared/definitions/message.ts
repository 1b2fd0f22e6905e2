/** Queries and updates that an orchestration answers: named once, typed for its code and for its callers. */
import { brand, requireName } from "./brand.ts";
import { type OptionNames, refuseUnknownOptions } from "./option-names.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** Signals of one name, in order of arrival: `for await (const payload of ctx.signals("paid"))`. */
export interface SignalStream<T> extends AsyncIterable<T> {
  /**
   * Takes all unread signals of the name at once: use it before `continueAsNew`, which carries the other
   * signals over.
   */
  drain(): T[];
}

/**
 * A request that changes an instance and is answered: `ctx.onUpdate` handles it, `client.update` sends it.
 */
export type UpdateDefinition<I = unknown, O = unknown> = MessageDefinition<"update", I, O>;

interface MessageDefinition<K extends "query" | "update", I, O> {
  readonly [brand]: K;
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** Carries the types for the compiler; undefined at run time. */
  readonly types?: { input: I; output: O };
}

/** A question about an instance: `ctx.onQuery` answers it, `client.query` asks it. */
export type QueryDefinition<I = unknown, O = unknown> = MessageDefinition<"query", I, O>;

type Input<S, I> = S extends Schema ? SchemaIn<S> : I;
type Output<S, O> = S extends Schema ? SchemaOut<S> : O;

interface MessageSpec<IS, OS> {
  /** Checks the caller's input. */
  input?: IS;
  /** Checks the orchestration's answer. */
  output?: OS;
}

const specNames: OptionNames<MessageSpec<unknown, unknown>> = { input: true, output: true };

/**
 * Names a query, for the code that answers it and the clients that ask it.
 *
 * @example
 * ```ts
 * export const progress = defineQuery("progress", { output: z.number() });
 * // in the orchestration, before the first await:
 * ctx.onQuery(progress, () => done / total);
 * // in a client:
 * const share = await client.query(instanceId, progress);
 * ```
 */
export function defineQuery<
  I = undefined,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(name: string, spec: MessageSpec<IS, OS> = {}): QueryDefinition<Input<IS, I>, Output<OS, O>> {
  refuseUnknownOptions(`query "${name}"`, spec, specNames);
  return { [brand]: "query", name: requireName("query", name), input: spec.input, output: spec.output };
}

/**
 * Names an update, for the code that handles it and the clients that send it.
 *
 * @example
 * ```ts
 * export const setPrice = defineUpdate("set-price", { input: z.number(), output: z.number() });
 * // in the orchestration, before the first await:
 * ctx.onUpdate(setPrice, (wanted) => (price = wanted), { validate: (wanted) => refuseNegative(wanted) });
 * // in a client:
 * const price = await client.update(instanceId, setPrice, 12);
 * ```
 */
export function defineUpdate<
  I = undefined,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(name: string, spec: MessageSpec<IS, OS> = {}): UpdateDefinition<Input<IS, I>, Output<OS, O>> {
  refuseUnknownOptions(`update "${name}"`, spec, specNames);
  return { [brand]: "update", name: requireName("update", name), input: spec.input, output: spec.output };
}
