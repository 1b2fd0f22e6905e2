/**
 * Publishes the effects of one loaded instance: after its commits, and those that an earlier owner may have
 * left unpublished.
 */
import type { Effect, Instance, InstanceState } from "../../../shared/replay/index.ts";
import { SparseMap } from "../../../shared/runtime/index.ts";
import type { OrchestratorDeps } from "../deps.ts";
import type { LaneWork } from "../lane/lane-work.ts";
import type { EffectTarget } from "./effect-target.ts";
import { publishEffects } from "./effects.ts";
import { scheduleWake } from "./schedule-effects.ts";
import { SessionRegister } from "./session-register.ts";
import { Summaries } from "./summaries.ts";

export class InstancePublisher {
  readonly #deps: OrchestratorDeps;
  #target: EffectTarget;

  constructor(
    deps: OrchestratorDeps,
    signal: AbortSignal,
    shown: ConstructorParameters<typeof Summaries>[2],
  ) {
    const { bus, runtime, capabilities } = deps;
    const outbox = { bus, runtime, capabilities, signal };
    this.#deps = deps;
    this.#target = {
      outbox,
      register: new SessionRegister(deps, outbox),
      summaries: new Summaries(deps, signal, shown),
      schedules: new SparseMap(),
    };
  }

  get target(): EffectTarget {
    return this.#target;
  }

  get summaries(): Summaries {
    return this.#target.summaries;
  }

  /** Aborted when this orchestrator no longer owns the partition. */
  get signal(): AbortSignal {
    return this.#target.outbox.signal;
  }

  publish(state: Readonly<InstanceState>, effects: readonly Effect[], lane: LaneWork): Promise<void> {
    const due = state.next ? effects.filter(({ kind }) => kind !== "unschedule") : effects;
    return publishEffects(this.#deps, state, due, this.#target, lane);
  }

  /** Publishes the schedule again after the wake with that sequence came before its time. */
  scheduleAgain(
    state: Readonly<InstanceState>,
    { of, at, wakeSeq }: { of: number; at: number; wakeSeq: number },
    lane: LaneWork,
  ): Promise<void> {
    return scheduleWake({ deps: this.#deps, state, target: this.#target, lane }, of, at, wakeSeq);
  }

  /** Sends those of the tasks that are still open by the queue. */
  sendTasks(state: Readonly<InstanceState>, ids: readonly number[], lane: LaneWork): Promise<void> {
    const open = ids.flatMap((id) => state.tasks.get(id) ?? []);
    return this.publish(
      state,
      open.map((task) => ({ kind: "task", task })),
      lane,
    );
  }

  /** Sends by the queue those lane tasks of an earlier owner that no live worker holds (LANE-1). */
  async sendLost(state: Readonly<InstanceState>, laned: readonly number[], lane: LaneWork): Promise<void> {
    const lost = await Promise.all(
      laned.map(async (id) => {
        const task = state.tasks.get(id);
        if (!task || task.attempt > 1 || lane.isOut(state, task)) return [];
        return (await lane.adopt(state, task)) ? [] : [id];
      }),
    );
    await this.sendTasks(state, lost.flat(), lane);
  }

  /**
   * An execution that has ended keeps its schedules until the effects of the next execution's first commit
   * are published: if a local timer caused the end, nothing else would wake the owner that has to repair it
   * (T3). Returns a function that removes the schedules, or undefined if there are none.
   */
  keepSchedules({ state, lastEffects }: Instance, lane: LaneWork): (() => Promise<void>) | undefined {
    const target = this.#target;
    const unschedules = lastEffects.filter(({ kind }) => kind === "unschedule");
    this.#target = { ...target, schedules: new SparseMap() };
    if (unschedules.length === 0) return undefined;
    return () => publishEffects(this.#deps, state, unschedules, target, lane);
  }
}
