/** Checks a call's input and output against its schemas, the same in every kind of host. */
import type { Failure } from "../../../schemas/index.ts";
import { type AnyCall, validate } from "../../../shared/definitions/index.ts";
import { Fault, isFault, toFailure } from "../../../shared/errors/index.ts";

export class CheckedCall {
  readonly #call: AnyCall;
  /** The call's name for people: `type.call`. */
  readonly what: string;

  constructor(call: AnyCall, what: string) {
    this.#call = call;
    this.what = what;
  }

  parse(input: unknown): unknown {
    return validate(this.#call.input, input, "invalid_input", `input of ${this.what}`);
  }

  check(output: unknown): unknown {
    return validate(this.#call.output, output, "invalid_output", `output of ${this.what}`);
  }

  /** An input that does not parse fails alone; the code gets the others. */
  parseAll(inputs: readonly unknown[]): CheckedBatch {
    return new CheckedBatch(
      this.what,
      inputs.map((input) => attempt(() => this.parse(input))),
    );
  }
}

type Parsed = { ok: true; value: unknown } | { ok: false; error: Failure };

export class CheckedBatch {
  readonly #what: string;
  readonly #inputs: readonly Parsed[];
  /** The inputs that the code gets. */
  readonly good: readonly unknown[];

  constructor(what: string, inputs: readonly Parsed[]) {
    this.#what = what;
    this.#inputs = inputs;
    this.good = inputs.flatMap((item) => (item.ok ? [item.value] : []));
  }

  /** Puts the code's results in the places of the inputs they belong to. */
  merge<Item>(
    results: unknown,
    itemOf: (result: unknown) => Item,
  ): (Item | Extract<Parsed, { ok: false }>)[] {
    if (!Array.isArray(results) || results.length !== this.good.length) {
      throw new Fault("application", {
        code: "invalid_batch_result",
        message: `${this.#what} got ${this.good.length} inputs and must return an array of as many results`,
      });
    }
    let at = 0;
    return this.#inputs.map((item) => (item.ok ? itemOf(results[at++]) : item));
  }
}

function attempt(make: () => unknown): Parsed {
  try {
    return { ok: true, value: make() };
  } catch (error) {
    return { ok: false, error: toFailure(error) };
  }
}

export const unknownCode = (what: "call" | "activity", name: string, where: string): Fault =>
  new Fault("contract", { code: `unknown_${what}`, message: `${where} has no ${what} named ${name}` });

/** The kind of a fault says whether trying again may help. */
export function failureOf(error: unknown): Failure {
  const failure = toFailure(error);
  return isFault(error) ? { ...failure, retryable: error.kind === "transient" } : failure;
}
