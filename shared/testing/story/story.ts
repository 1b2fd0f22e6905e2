/**
 * Tests of orchestration code: given what happened to an instance, when something else happens, its code does
 * this. No engine runs: the code is run over its history, as at every turn, and its next records are
 * compared.
 */

import type { HistoryEvent } from "../../../schemas/index.ts";
import type { OrchestrationDefinition } from "../../definitions/index.ts";
import { messageOf } from "../../errors/index.ts";
import { difference, type ExpectedEvent } from "../history/expected-event.ts";
import { historyTable } from "../history/history-table.ts";
import type { Fact } from "./facts.ts";
import { Bench } from "./instance-bench.ts";
import { start } from "./messages.ts";

/** One instance and the facts of its story so far. */
export class Story<O = unknown> {
  readonly #bench: Bench;
  /** Number of events before the latest `when`. */
  #before = 0;

  private constructor(bench: Bench) {
    this.#bench = bench;
  }

  /** @internal Use {@link given}. */
  static async begin<O>(
    app: Readonly<Record<string, unknown>>,
    name: string,
    input: unknown,
  ): Promise<Story<O>> {
    const bench = new Bench({ ...app }, "replay", { instanceId: "story" });
    await bench.turn(start(name, input));
    const story = new Story<O>(bench);
    story.#check();
    return story;
  }

  /** These facts have happened, in this order. */
  async given(...facts: Fact[]): Promise<this> {
    for (const fact of facts) await this.#happen(fact);
    this.#before = this.#bench.events.length;
    return this;
  }

  /** These facts happen now; `expect` compares what the code does in response. */
  async when(...facts: Fact[]): Promise<this> {
    this.#before = this.#bench.events.length;
    for (const fact of facts) await this.#happen(fact);
    return this;
  }

  /**
   * Compares all events recorded since `when`, the facts included: in order, by kind or with some of their
   * fields.
   */
  expect(...expected: ExpectedEvent[]): this {
    const entries = this.#entries();
    const parted = difference(expected, entries.slice(this.#before));
    if (parted !== undefined)
      throw new Error(
        `then something else happened:\n${parted}\n\nThe whole history:\n${historyTable(entries)}`,
      );
    return this;
  }

  /** The events since `when`. */
  get happened(): readonly HistoryEvent[] {
    return this.#bench.events.slice(this.#before);
  }

  /** The instance's output; undefined while it runs. */
  get output(): O | undefined {
    return this.#bench.output as O | undefined;
  }

  get status(): string {
    return this.#bench.state.status;
  }

  /** The history as a table for people. */
  toString(): string {
    return historyTable(this.#entries());
  }

  async #happen(fact: Fact): Promise<void> {
    try {
      await fact.happen(this.#bench);
    } catch (error) {
      const message = messageOf(error);
      throw new Error(`${fact.about}: ${message}\n\nThe history so far:\n${this}`, { cause: error });
    }
    this.#check();
  }

  #check(): void {
    const { fault } = this.#bench;
    if (fault) throw new Error(`the code cannot go on: ${fault.message}\n\n${this}`, { cause: fault });
  }

  #entries(): (HistoryEvent & { at: number })[] {
    return this.#bench.commits.flatMap(({ at, events }) => events.map((event) => ({ ...event, at })));
  }
}

/**
 * Starts the story of an instance. Facts of its past follow with `given`, the facts under test with `when`.
 *
 * @example
 * ```ts
 * const story = await given(app, app.order, { item: "book" });
 * await story.when(completed(app.reserve, "shelf 3"));
 * story.expect("activity.completed", { kind: "activity.scheduled", name: "charge" });
 * ```
 */
export const given = <I, O>(
  app: Readonly<Record<string, unknown>>,
  orchestration: OrchestrationDefinition<I, O>,
  ...[input]: undefined extends I ? [input?: I] : [input: I]
): Promise<Story<O>> => Story.begin<O>(app, orchestration.name, input);
