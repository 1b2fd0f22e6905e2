/**
 * Requests that change the instance and are answered (Q2). The code considers an update before anything is
 * recorded. Once it is accepted, its handler runs beside the rest of the code, and the handler's result is a
 * command like any other.
 */
import type { NewEvent } from "../../../../schemas/index.ts";
import { type Schema, type UpdateDefinition, validate } from "../../../definitions/index.ts";
import { Fault, HoldfastError, toFailure } from "../../../errors/index.ts";
import { SparseMap } from "../../../runtime/index.ts";
import { ContinueAsNew } from "../../run/code-ending.ts";
import { look } from "../../run/read-only-look.ts";
import type { Runner } from "../../run/runner.ts";
import { toPayload } from "../../run/to-payload.ts";

/** `spoiled`: as with a query, the copy of the instance must be built again from history. */
export type Considered =
  | { kind: "acceptable" }
  | { kind: "refused"; code: string; message: string; details?: unknown; spoiled: boolean };

type Answer = NewEvent<"update.completed" | "update.failed">;

interface Handler {
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly handle: (input: unknown) => unknown;
  readonly check: ((input: unknown) => unknown) | undefined;
}

export class Updates {
  readonly #handlers = new SparseMap<string, Handler>();
  /** Event ids of updates whose handler has not ended. */
  readonly #pending = new Set<number>();

  register(
    update: UpdateDefinition | string,
    handle: (input: unknown) => unknown,
    check: ((input: unknown) => unknown) | undefined,
  ): void {
    const name = typeof update === "string" ? update : update.name;
    const { input, output } = typeof update === "string" ? { input: undefined, output: undefined } : update;
    this.#handlers.set(name, { input, output, handle, check });
  }

  get names(): string[] {
    return [...this.#handlers.keys()].sort();
  }

  get pending(): number {
    return this.#pending.size;
  }

  /**
   * Returns false if the handler has no validator: then the decision is the same in every state of the
   * instance.
   */
  dependsOnState(name: string): boolean {
    const handler = this.#handlers.get(name);
    return !handler || handler.check !== undefined;
  }

  /** Asks the code whether it accepts the update. Never throws, never waits, changes nothing. */
  consider(instanceId: string, now: number, name: string, input: unknown): Considered {
    const handler = this.#handlers.get(name);
    if (!handler) return unknownUpdate(instanceId, name, this.names);
    let checked: unknown;
    try {
      checked = validate(handler.input, input, "invalid_input", `input of update "${name}"`);
    } catch (error) {
      const { code, message, details } = toFailure(error);
      return { kind: "refused", code, message, details, spoiled: false };
    }
    const { check } = handler;
    if (!check) return { kind: "acceptable" };
    const seen = look(instanceId, now, `the validator of update "${name}"`, () => check(checked));
    switch (seen.kind) {
      case "seen":
        return { kind: "acceptable" };
      case "refused":
        return { kind: "refused", code: "validator_broken", message: seen.message, spoiled: true };
      case "threw": {
        const { code, message, details } = toFailure(seen.error);
        return {
          kind: "refused",
          code: "update_refused",
          message,
          details: { code, details },
          spoiled: false,
        };
      }
    }
  }

  /** Runs the handler of an update that was accepted as event `of`. */
  begin(runner: Runner, of: number, name: string, input: unknown): void {
    const handler = this.#handlers.get(name);
    if (!handler) {
      runner.failWith(noHandler(runner.definition.name, name, of));
      return;
    }
    this.#pending.add(of);
    const run = async () =>
      handler.handle(validate(handler.input, input, "invalid_input", `input of update "${name}"`));
    run()
      .then(
        (value) => this.#answer(runner, answered(of, name, handler, value)),
        (error) => this.#answer(runner, failed(of, error)),
      )
      // If the code broke a rule, the runner has recorded it already.
      .catch(() => undefined);
  }

  #answer(runner: Runner, { event, bytes }: { event: Answer; bytes: number }): void {
    runner.issue(event, bytes);
    this.#pending.delete(event.of);
  }
}

function answered(of: number, name: string, handler: Handler, value: unknown) {
  try {
    const answer = validate(handler.output, value, "invalid_output", `answer of update "${name}"`);
    const { payload, bytes } = toPayload(answer);
    return { event: { kind: "update.completed", of, answer: payload } satisfies Answer, bytes };
  } catch (error) {
    return failed(of, error);
  }
}

const failed = (of: number, error: unknown) => ({
  event: {
    kind: "update.failed",
    of,
    error: toFailure(error instanceof ContinueAsNew ? notInAHandler() : error),
  } satisfies Answer,
  bytes: 0,
});

const notInAHandler = () =>
  new HoldfastError({
    code: "not_in_a_handler",
    message:
      "the handler of an update called ctx.continueAsNew, which is for the code of the orchestration itself: let it wait with ctx.until for what the handler sets",
  });

const noHandler = (orchestration: string, name: string, of: number): Fault =>
  new Fault("nondeterminism", {
    code: "nondeterminism",
    message: `history has update "${name}" (event ${of}), and the code of "${orchestration}" has no handler for it`,
    hint: "Register handlers with ctx.onUpdate before the first await, and keep those of running instances.",
  });

const unknownUpdate = (instanceId: string, name: string, names: readonly string[]): Considered => ({
  kind: "refused",
  code: "unknown_update",
  message: `instance ${instanceId} takes no update "${name}"; there ${names.length === 1 ? "is" : "are"}: ${names.join(", ") || "none"}`,
  details: { names },
  spoiled: false,
});
