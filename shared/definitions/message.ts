/** Questions and requests an orchestration answers: named once, typed for its code and for its callers. */
import { brand, requireName } from "./brand.ts";
import type { Schema, SchemaIn, SchemaOut } from "./schema.ts";

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
