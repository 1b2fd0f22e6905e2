/** Queries that the code answers, by name. */
import type { AnyOrchestration, QueryDefinition, Schema } from "../../../definitions/index.ts";
import { validate } from "../../../definitions/index.ts";
import { HoldfastError, toFailure } from "../../../errors/index.ts";
import { SparseMap, writeJson } from "../../../runtime/index.ts";
import { look } from "../../run/read-only-look.ts";

/**
 * The answer to a query. `spoiled`: the query may have changed the copy of the instance, which must be built again from
 * history.
 */
export type Asked =
  | { kind: "answered"; json: string }
  | { kind: "refused"; code: string; message: string; details?: unknown; spoiled: boolean };

interface Answerer {
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly answer: (input: unknown) => unknown;
  /** True once two runs in a row gave the same result. */
  steady: boolean;
}

export class Queries {
  readonly #answerers = new SparseMap<string, Answerer>();

  register(query: QueryDefinition | string, answer: (input: unknown) => unknown): void {
    const name = typeof query === "string" ? query : query.name;
    const { input, output } = typeof query === "string" ? { input: undefined, output: undefined } : query;
    this.#answerers.set(name, { input, output, answer, steady: false });
  }

  /** The definition's queries see the state alone. */
  registerAll(queries: AnyOrchestration["queries"], state: () => object): void {
    for (const [name, answer] of Object.entries(queries ?? {}))
      this.register(name, (input) => answer(state() as never, input as never));
  }

  get names(): string[] {
    return [...this.#answerers.keys()].sort();
  }

  /** Asks the code. Never throws, never waits, changes nothing (Q1). */
  ask(instanceId: string, now: number, name: string, input: unknown): Asked {
    const answerer = this.#answerers.get(name);
    if (!answerer) return unknownQuery(instanceId, name, this.names);
    let checked: unknown;
    try {
      checked = validate(answerer.input, input, "invalid_input", `input of query "${name}"`);
    } catch (error) {
      return refusal(error, false);
    }
    const first = this.#once(instanceId, now, name, answerer, checked);
    if (answerer.steady || first.kind === "refused") return first;
    const second = this.#once(instanceId, now, name, answerer, checked);
    if (second.kind === "refused" || second.json !== first.json) {
      const message = `query "${name}" gave two different answers when asked twice: its handler changes the instance`;
      return { kind: "refused", code: "query_changes_state", message, spoiled: true };
    }
    answerer.steady = true;
    return first;
  }

  #once(instanceId: string, now: number, name: string, answerer: Answerer, input: unknown): Asked {
    const what = `query "${name}"`;
    const seen = look(instanceId, now, what, () => answerer.answer(input));
    switch (seen.kind) {
      case "refused": {
        const code = seen.why === "awaits" ? "query_awaits" : "query_changes_state";
        return { kind: "refused", code, message: seen.message, spoiled: true };
      }
      case "threw": {
        const { code, message } = toFailure(seen.error);
        const details = { code, message };
        return {
          kind: "refused",
          code: "query_failed",
          message: `${what} threw: ${message}`,
          details,
          spoiled: true,
        };
      }
      case "seen":
        try {
          const answer = validate(answerer.output, seen.value, "invalid_output", `answer of ${what}`);
          return { kind: "answered", json: answer === undefined ? "null" : writeJson(answer) };
        } catch (error) {
          return refusal(error, false);
        }
    }
  }
}

function refusal(error: unknown, spoiled: boolean): Asked {
  if (!(error instanceof HoldfastError)) {
    const { code, message } = toFailure(error);
    return { kind: "refused", code: "query_failed", message, details: { code }, spoiled };
  }
  const { code, message, details } = error;
  return { kind: "refused", code, message, details, spoiled };
}

const unknownQuery = (instanceId: string, name: string, names: readonly string[]): Asked => ({
  kind: "refused",
  code: "unknown_query",
  message: `instance ${instanceId} answers no query "${name}"; there ${names.length === 1 ? "is" : "are"}: ${names.join(", ") || "none"}`,
  details: { names },
  spoiled: false,
});
