/** Questions and requests an orchestration answers: named once, typed for its code and for its callers. */
import { brand, requireName } from "./brand.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

/** A signal by name, or anything that has a name and says what its payload is. */
export type SignalName<T> = string | { readonly name: string; readonly types?: { payload: T } };

/** Signals of one name, in order of arrival: `for await (const payload of ctx.signals("paid"))`. */
export interface SignalStream<T> extends AsyncIterable<T> {
  /** Those that are there and nobody has taken, at once: before `continueAsNew`, which carries the others over. */
  drain(): T[];
}

/** A request that changes an instance and is answered: `ctx.onUpdate` handles it, `client.update` sends it. */
export type UpdateDefinition<I = unknown, O = unknown> = MessageDefinition<"update", I, O>;

interface MessageDefinition<K extends "query" | "update", I, O> {
  readonly [brand]: K;
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  /** For the compiler alone. */
  readonly types?: { input: I; output: O };
}

/** A question about an instance: `ctx.onQuery` answers it, `client.query` asks it. */
export type QueryDefinition<I = unknown, O = unknown> = MessageDefinition<"query", I, O>;

type Typed<S, Otherwise> = S extends Schema ? S : Otherwise;
export type InputOf<S, I> = Typed<S, undefined> extends Schema ? SchemaIn<S> : I;
export type OutputOf<S, O> = Typed<S, undefined> extends Schema ? SchemaOut<S> : O;

interface MessageSpec<IS, OS> {
  /** Checks what the caller sends. */
  input?: IS;
  /** Checks what the orchestration answers. */
  output?: OS;
}

/** Names a question. The name is a token of a subject. */
export function defineQuery<
  I = undefined,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(name: string, spec: MessageSpec<IS, OS> = {}): QueryDefinition<InputOf<IS, I>, OutputOf<OS, O>> {
  return { [brand]: "query", name: requireName("query", name), input: spec.input, output: spec.output };
}

/** Names a request. The name is a token of a subject. */
export function defineUpdate<
  I = undefined,
  O = unknown,
  IS extends Schema | undefined = undefined,
  OS extends Schema | undefined = undefined,
>(name: string, spec: MessageSpec<IS, OS> = {}): UpdateDefinition<InputOf<IS, I>, OutputOf<OS, O>> {
  return { [brand]: "update", name: requireName("update", name), input: spec.input, output: spec.output };
}
