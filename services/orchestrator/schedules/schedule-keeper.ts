/**
 * The orchestration that keeps one schedule. It is an instance like any other, so its times survive
 * whatever an instance survives.
 *
 * SCHEDULE-1 Every time of the schedule is handled once: the keeper's history records up to which time it
 *    has come, and the run of a time has an id made of that time, so a start that is sent twice starts
 *    nothing.
 * SCHEDULE-2 What the time zone data of this process says is recorded: replay asks the history, never the
 *    data.
 * SCHEDULE-3 Except with `allow`, runs are followed: the keeper gets the end of each run before the next
 *    begins.
 * SCHEDULE-4 The input of an execution is the schedule as it stands: a change begins a new execution at
 *    once.
 */
import {
  type Overlap,
  ScheduleCommand,
  ScheduleInput,
  scheduleIdOf,
  scheduleOrchestration,
  scheduleSignal,
  type WaitingRun,
} from "../../../schemas/index.ts";
import { defineOrchestration, type OrchestrationContext } from "../../../shared/definitions/index.ts";
import { messageOf } from "../../../shared/errors/index.ts";
import { requestEnd, spawnFollowed } from "../../../shared/replay/index.ts";
import {
  type Due,
  lookForDue,
  type ParsedSchedule,
  parseSchedule,
  runId,
  timesBetween,
} from "../../../shared/schedules/index.ts";

/**
 * Limits per turn and per execution: the history is read again for every time of the schedule, so it is kept
 * short.
 */
const startsAtOnce = 100;
const startsPerExecution = 300;
const roundsPerExecution = 20;
const longestWaitingLine = 1000;
const rememberedRuns = 10;
const rememberedTokens = 100;

export const scheduleKeeper = defineOrchestration(scheduleOrchestration, {
  input: ScheduleInput,
  run: (ctx, input) => new ScheduleKeeper(ctx, input).run(),
});

type Next = Due["next"];

class ScheduleKeeper {
  readonly #ctx: OrchestrationContext;
  readonly #scheduleId: string;
  readonly #now: ScheduleInput;
  readonly #schedule: ParsedSchedule;
  /** Runs that the keeper asked to end in this execution. */
  readonly #asked = new Set<string>();
  /** Undefined until the keeper has computed the next time after a change. */
  #next: { at: Next } | undefined;
  #started = 0;
  #lastStatus = "";
  /** Why the last command was refused; shown until the next command. */
  #error: string | undefined;

  constructor(ctx: OrchestrationContext, input: ScheduleInput) {
    this.#ctx = ctx;
    this.#scheduleId = scheduleIdOf(ctx.instanceId);
    this.#schedule = parseSchedule(input.spec, ctx.execution === 1 ? ctx.now() : undefined);
    // Clone, because the lists in this state grow and the recorded input must not.
    this.#now = structuredClone(input);
    this.#now.cursor ??= ctx.now() - (this.#schedule.recurrence.kind === "at" ? this.#schedule.catchUpMs : 0);
  }

  async run(): Promise<Record<string, unknown>> {
    for (let round = 0; round < roundsPerExecution && this.#started < startsPerExecution; round++) {
      if (!this.#now.paused && !this.#now.deleted) this.#handleDue();
      this.#startWaiting();
      this.#publishStatus();
      if (this.#isOver()) return this.#summary();
      const command = await this.#nextCommand();
      if (command && this.#handle(command) === "changed") break;
    }
    return this.#ctx.continueAsNew(this.#now);
  }

  #isOver(): boolean {
    const { running, waiting, paused, deleted } = this.#now;
    if (running.length > 0 || waiting.length > 0) return false;
    return deleted === true || (!paused && this.#next !== undefined && this.#next.at === undefined);
  }

  #handleDue(): void {
    const ctx = this.#ctx;
    const now = ctx.now();
    if (this.#next && (this.#next.at === undefined || this.#next.at.at > now)) return;
    const { cursor = now } = this.#now;
    // SCHEDULE-2
    const due = ctx.sideEffect(() =>
      lookForDue(this.#schedule, this.#scheduleId, { cursor, now, atMost: startsAtOnce }),
    );
    this.#now.cursor = due.cursor;
    this.#now.missed += due.missed;
    for (const time of due.times) {
      if (this.#reachedLimit) break;
      this.#admit({
        instanceId: runId(this.#scheduleId, time),
        at: time,
        overlap: this.#schedule.overlap,
        counts: true,
      });
    }
    this.#next = { at: this.#reachedLimit ? undefined : due.next };
  }

  get #reachedLimit(): boolean {
    const { limit } = this.#schedule;
    const { runs, waiting } = this.#now;
    return limit !== undefined && runs + waiting.filter(({ counts }) => counts).length >= limit;
  }

  /** Starts the run, lets it wait, or skips it, by its overlap policy. */
  #admit(run: WaitingRun): void {
    const state = this.#now;
    const busy = state.running.length > 0 || state.waiting.length > 0;
    if (run.overlap === "allow" || !busy) {
      this.#start(run);
      return;
    }
    switch (run.overlap) {
      case "skip":
        state.skipped++;
        return;
      case "buffer-one":
      case "buffer-all": {
        const room = run.overlap === "buffer-one" ? 1 : longestWaitingLine;
        if (state.waiting.length < room) state.waiting.push(run);
        else state.skipped++;
        return;
      }
      case "cancel-other":
      case "terminate-other": {
        this.#endOthers(run.overlap);
        // A run that waited for the same end is skipped.
        state.skipped += state.waiting.length;
        state.waiting = [run];
        return;
      }
    }
  }

  #endOthers(overlap: Extract<Overlap, "cancel-other" | "terminate-other">): void {
    const verb = overlap === "cancel-other" ? "cancel" : "terminate";
    for (const { instanceId } of this.#now.running) {
      if (this.#asked.has(instanceId)) continue;
      this.#asked.add(instanceId);
      requestEnd(this.#ctx, instanceId, verb, `schedule ${this.#scheduleId} starts its next run`);
    }
  }

  /** SCHEDULE-3: starts the waiting runs one after the other. */
  #startWaiting(): void {
    const { running, waiting } = this.#now;
    if (running.length > 0) return;
    const run = waiting.shift();
    if (run) this.#start(run);
  }

  #start({ instanceId, at, overlap, counts }: WaitingRun): void {
    const { orchestration, input } = this.#schedule.spec;
    this.#started++;
    if (counts) this.#now.runs++;
    if (overlap === "allow") this.#ctx.spawn(orchestration, input, { id: instanceId });
    else {
      spawnFollowed(this.#ctx, { name: orchestration, input, id: instanceId, signal: scheduleSignal });
      this.#now.running.push({ instanceId, at });
    }
    this.#now.recent = [{ instanceId, at }, ...this.#now.recent].slice(0, rememberedRuns);
  }

  /** Resolves with undefined when the next time of the schedule is due. */
  async #nextCommand(): Promise<ScheduleCommand | undefined> {
    const signal = this.#ctx.waitForSignal(scheduleSignal);
    const next = this.#now.paused || this.#now.deleted ? undefined : this.#next?.at;
    const received =
      next === undefined
        ? await signal
        : await Promise.race([signal, this.#ctx.sleep(Math.max(0, next.at - this.#ctx.now()))]);
    if (received === undefined) return undefined;
    const command = ScheduleCommand.safeParse(received);
    if (command.success) return command.data;
    this.#error = `a command that is none: ${command.error.issues[0]?.message}`;
    return undefined;
  }

  /** Returns `changed` if the command changed the schedule (SCHEDULE-4). */
  #handle(command: ScheduleCommand): "changed" | "same" {
    const state = this.#now;
    if (command.kind !== "ended") this.#error = undefined;
    switch (command.kind) {
      case "ended":
        state.running = state.running.filter(({ instanceId }) => instanceId !== command.instanceId);
        return "same";
      case "update":
        return this.#update(command.spec);
      case "pause":
        state.paused = { note: command.note, at: this.#ctx.now() };
        return "changed";
      case "resume":
        if (!state.paused) return "same";
        state.paused = undefined;
        // Times that passed during the pause are skipped.
        state.cursor = Math.max(state.cursor ?? 0, this.#ctx.now());
        return "changed";
      case "trigger": {
        const { token, overlap = this.#schedule.overlap } = command;
        if (state.deleted || state.tokens.includes(token)) return "same";
        state.tokens = [...state.tokens, token].slice(-rememberedTokens);
        const at = this.#ctx.now();
        this.#admit({ instanceId: `${this.#scheduleId}-t${token}`, at, overlap, counts: false });
        return "same";
      }
      case "backfill": {
        const { from, to, overlap = this.#schedule.overlap } = command;
        if (state.deleted) return "same";
        const times = this.#ctx.sideEffect(() => timesBetween(this.#schedule, from, to, longestWaitingLine));
        for (const at of times) {
          const instanceId = runId(this.#scheduleId, at);
          this.#admit({ instanceId, at, overlap, counts: false });
        }
        return "same";
      }
      case "delete":
        state.deleted = true;
        state.waiting = [];
        return "changed";
    }
  }

  #update(spec: ScheduleInput["spec"]): "changed" | "same" {
    try {
      parseSchedule(spec, this.#ctx.now());
    } catch (error) {
      this.#error = messageOf(error);
      return "same";
    }
    // Times that came due before the change, while no orchestrator ran, follow the schedule as it was.
    if (!this.#now.paused && !this.#now.deleted) this.#handleDue();
    if (timing(spec) !== timing(this.#now.spec))
      this.#now.cursor = Math.max(this.#now.cursor ?? 0, this.#ctx.now());
    this.#now.spec = spec;
    return "changed";
  }

  #summary(): Record<string, unknown> {
    const { runs, skipped, missed, recent, deleted } = this.#now;
    return { runs, skipped, missed, recent, ...(deleted ? { deleted } : {}) };
  }

  /** Publishes the status if it changed. */
  #publishStatus(): void {
    const { runs, skipped, missed, running, waiting, recent, paused } = this.#now;
    const status = {
      ...(paused || !this.#next?.at ? {} : { next: this.#next.at.time }),
      ...{ runs, skipped, missed, running, waiting: waiting.length, recent },
      ...(this.#error === undefined ? {} : { error: this.#error }),
    };
    const text = JSON.stringify(status);
    if (text === this.#lastStatus) return;
    this.#lastStatus = text;
    this.#ctx.setStatus(status);
  }
}

/**
 * The parts of a schedule that decide its times: if they are unchanged, times that jitter postponed are still
 * due.
 */
const timing = ({
  cron,
  timeZone,
  every,
  offset,
  at,
  startAt,
  endAt,
  jitter,
}: ScheduleInput["spec"]): string =>
  JSON.stringify([cron, timeZone, every, offset, at, startAt, endAt, jitter]);
