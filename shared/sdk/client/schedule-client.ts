/**
 * Schedules, for clients: create, change, list. Each schedule is kept by an instance of its own
 * (docs/schedules.md).
 */
import { z } from "zod";
import {
  type InstanceSummary,
  longestScheduleId,
  Overlap,
  ScheduleCommand,
  ScheduleInput,
  type ScheduleOptions,
  ScheduleRun,
  ScheduleSpec,
  ScheduleState,
  scheduleIdOf,
  scheduleInstance,
  scheduleOrchestration,
  scheduleSignal,
} from "../../../schemas/index.ts";
import { encode, publishOrThrow, requireToken } from "../../bus/index.ts";
import { refuseUnknownOptions } from "../../definitions/index.ts";
import { HoldfastError } from "../../errors/index.ts";
import { token } from "../../runtime/index.ts";
import { nextTimes, parseSchedule, timesBetween } from "../../schedules/index.ts";
import { userFacing } from "../user-facing.ts";
import type { ClientParts } from "./client-options.ts";
import { type Instances, isTerminal } from "./instances.ts";

/** A schedule: its spec, its next times, its latest runs. */
export const ScheduleView = z.object({
  scheduleId: z.string(),
  /**
   * `pending`: accepted, its keeper has not begun. `finished`: it has no further times, or it was deleted.
   * `failed`: its options are not a valid schedule.
   */
  status: z.enum(["pending", "active", "paused", "finished", "failed"]),
  spec: ScheduleSpec.optional(),
  /** Why it was paused. */
  note: z.string().optional(),
  createdAt: z.number().optional(),
  /** The next ten times, without jitter. */
  next: z.array(z.number()),
  /** Number of runs started by the clock. */
  runs: z.int(),
  skipped: z.int(),
  missed: z.int(),
  running: z.array(ScheduleRun),
  waiting: z.int(),
  /** The latest ten runs, newest first. */
  recent: z.array(ScheduleRun),
  /** Why it failed, or why the latest command was refused. */
  error: z.string().optional(),
});
export type ScheduleView = z.infer<typeof ScheduleView>;

/** Options of `client.schedules.create`, beside the schedule itself. */
export interface CreateScheduleOptions {
  /** Changes the schedule if one with this id exists. */
  replace?: boolean | undefined;
  paused?: boolean | undefined;
  note?: string | undefined;
}

/** Which past times of a schedule to run now. */
export interface BackfillOptions {
  /** Epoch milliseconds, or a date. */
  from: number | Date;
  to: number | Date;
  overlap?: Overlap | undefined;
}

type Start = (name: string, input: unknown, options: { id: string }) => Promise<unknown>;

const shownTimes = 10;
const longestBackfill = 1000;

/**
 * Creates, lists, changes, pauses, triggers and deletes schedules.
 *
 * @example
 * ```ts
 * await client.schedules.create("nightly", {
 *   orchestration: "report",
 *   cron: "0 2 * * *",
 *   timeZone: "Europe/Berlin",
 * });
 * ```
 */
export class ScheduleClient {
  readonly #parts: ClientParts;
  readonly #instances: Instances;
  readonly #start: Start;

  /** @internal Part of {@link Client}. */
  constructor(parts: ClientParts, instances: Instances, start: Start) {
    this.#parts = parts;
    this.#instances = instances;
    this.#start = start;
  }

  /** Creates a schedule. Times before now are not run. */
  create(scheduleId: string, given: ScheduleOptions, options: CreateScheduleOptions = {}): Promise<void> {
    return userFacing(async () => {
      requireScheduleId(scheduleId);
      const now = this.#now();
      const spec = specOf(given, now);
      const known = await this.#instances.find(scheduleInstance(scheduleId));
      if (known && isOver(known)) throw over(scheduleId, known);
      if (known && !options.replace) throw exists(scheduleId);
      if (known) {
        await this.#send(scheduleId, { kind: "update", spec });
        return;
      }
      const { paused, note } = options;
      if (note !== undefined) checked({ kind: "pause", note });
      const input = { spec, cursor: now, ...(paused ? { paused: { note, at: now } } : {}) };
      await this.#start(scheduleOrchestration, input, { id: scheduleInstance(scheduleId) });
    });
  }

  /** The new options hold from now on; runs in progress continue. */
  update(scheduleId: string, given: ScheduleOptions): Promise<void> {
    return userFacing(async () => {
      const spec = specOf(given, this.#now());
      await this.#command(scheduleId, { kind: "update", spec });
    });
  }

  pause(scheduleId: string, note?: string): Promise<void> {
    return userFacing(() =>
      this.#command(scheduleId, { kind: "pause", ...(note === undefined ? {} : { note }) }),
    );
  }

  /** Times that passed while the schedule was paused are skipped. */
  resume(scheduleId: string): Promise<void> {
    return userFacing(() => this.#command(scheduleId, { kind: "resume" }));
  }

  /** Runs the schedule now; returns the id of the run, which begins if the overlap policy allows it. */
  trigger(
    scheduleId: string,
    options: { overlap?: Overlap | undefined } = {},
  ): Promise<{ instanceId: string }> {
    return userFacing(async () => {
      const overlap = overlapOf(options.overlap);
      const once = token(this.#parts.runtime.random)
        .replace(/[^A-Za-z0-9]/g, "")
        .slice(0, 16);
      await this.#command(scheduleId, { kind: "trigger", token: once, ...overlap });
      return { instanceId: `${scheduleId}-t${once}` };
    });
  }

  /** Runs the times between two instants, both included; times that were run already are skipped. */
  backfill(scheduleId: string, options: BackfillOptions): Promise<{ times: number[] }> {
    return userFacing(async () => {
      const from = Number(options.from);
      const to = Number(options.to);
      if (!Number.isFinite(from) || !Number.isFinite(to) || to < from)
        throw invalid("backfill: from and to must be two instants, the earlier one first");
      const overlap = overlapOf(options.overlap);
      const { spec } = await this.describe(scheduleId);
      const times = timesBetween(parseSchedule(spec, undefined), from, to, longestBackfill + 1);
      if (times.length > longestBackfill)
        throw invalid(
          `backfill: more than ${longestBackfill} times lie between from and to; choose a shorter span`,
        );
      await this.#command(scheduleId, { kind: "backfill", from, to, ...overlap });
      return { times };
    });
  }

  /** Ends the schedule; runs in progress continue. */
  delete(scheduleId: string): Promise<void> {
    return userFacing(() => this.#command(scheduleId, { kind: "delete" }));
  }

  /** The schedule, its next times and its latest runs. */
  describe(scheduleId: string): Promise<ScheduleView> {
    return userFacing(async () => {
      requireScheduleId(scheduleId);
      const summary = await this.#instances.find(scheduleInstance(scheduleId));
      if (summary?.name !== scheduleOrchestration) throw missing(scheduleId);
      return viewOf(await this.#instances.view(summary), this.#now());
    });
  }

  /** Schedules that are not finished, or with `all` every stored one. */
  list({ all = false }: { all?: boolean | undefined } = {}): Promise<ScheduleView[]> {
    return userFacing(async () => {
      const views = await this.#instances.list({
        name: scheduleOrchestration,
        limit: Number.POSITIVE_INFINITY,
      });
      return views
        .map((view) => viewOf(view, this.#now()))
        .filter(({ status }) => all || (status !== "finished" && status !== "failed"))
        .sort((a, b) => (a.scheduleId < b.scheduleId ? -1 : 1));
    });
  }

  #now(): number {
    return this.#parts.runtime.clock.now();
  }

  async #command(scheduleId: string, command: ScheduleCommand): Promise<void> {
    requireScheduleId(scheduleId);
    const known = await this.#instances.find(scheduleInstance(scheduleId));
    if (known?.name !== scheduleOrchestration) throw missing(scheduleId);
    if (isOver(known)) throw over(scheduleId, known);
    await this.#send(scheduleId, command);
  }

  async #send(scheduleId: string, command: ScheduleCommand): Promise<void> {
    const { bus, names, runtime } = this.#parts;
    const keeper = scheduleInstance(scheduleId);
    await publishOrThrow(bus, {
      subject: names.signal(keeper, scheduleSignal),
      body: encode(checked(command)),
      msgId: `schedule-${keeper}-${token(runtime.random)}`,
    });
  }
}

/** Refuses unknown fields from a user. Keepers accept them, because a newer version may have written them. */
function specOf(given: ScheduleOptions, now: number): ScheduleSpec {
  refuseUnknownOptions("the schedule", given, ScheduleSpec.shape);
  return parseSchedule(given, now).spec;
}

/** Throws if the keeper would refuse the command. */
function checked(command: ScheduleCommand): ScheduleCommand {
  const parsed = ScheduleCommand.safeParse(command);
  if (parsed.success) return command;
  const [issue] = parsed.error.issues;
  throw invalid(`${command.kind}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is none"}`);
}

/** Builds the view from a keeper's summary. The next times are those after `now`. */
function viewOf(
  summary: Pick<InstanceSummary, "instanceId" | "status" | "startedAt" | "error"> & {
    input?: unknown;
    customStatus?: unknown;
  },
  now: number,
): ScheduleView {
  const input = ScheduleInput.safeParse(summary.input).data;
  const state = ScheduleState.safeParse(summary.customStatus).data;
  const status = statusOf(summary.status, input);
  const error = summary.error?.message ?? state?.error;
  return {
    scheduleId: scheduleIdOf(summary.instanceId),
    status,
    ...(input ? { spec: input.spec } : {}),
    ...(input?.paused?.note === undefined ? {} : { note: input.paused.note }),
    ...(summary.startedAt === undefined ? {} : { createdAt: summary.startedAt }),
    next: status === "active" && input ? upcoming(input, state, now) : [],
    runs: state?.runs ?? 0,
    skipped: state?.skipped ?? 0,
    missed: state?.missed ?? 0,
    running: state?.running ?? [],
    waiting: state?.waiting ?? 0,
    recent: state?.recent ?? [],
    ...(error === undefined ? {} : { error }),
  };
}

function statusOf(
  status: InstanceSummary["status"],
  input: ScheduleInput | undefined,
): ScheduleView["status"] {
  if (status === "failed") return "failed";
  if (status === "pending") return "pending";
  if (isTerminal(status) || input?.deleted) return "finished";
  return input?.paused ? "paused" : "active";
}

function upcoming({ spec }: ScheduleInput, state: ScheduleState | undefined, now: number): number[] {
  // The keeper has no further time: the runs begun and the runs that wait reach the limit.
  if (state && state.next === undefined) return [];
  try {
    const left = spec.limit === undefined ? shownTimes : Math.max(0, spec.limit - (state?.runs ?? 0));
    return nextTimes(parseSchedule(spec, undefined), now, Math.min(shownTimes, left));
  } catch {
    return []; // The keeper reports what is wrong with the schedule.
  }
}

function requireScheduleId(scheduleId: string): void {
  requireToken("schedule id", scheduleId);
  if (scheduleId.length > longestScheduleId)
    throw invalid(
      `schedule id: ${scheduleId.length} characters are too many, the most are ${longestScheduleId}`,
    );
}

function overlapOf(overlap: Overlap | undefined): { overlap?: Overlap } {
  if (overlap === undefined) return {};
  if (Overlap.options.includes(overlap)) return { overlap };
  throw invalid(`overlap ${JSON.stringify(overlap)}: must be one of ${Overlap.options.join(", ")}`);
}

const isOver = ({ status }: InstanceSummary): boolean => isTerminal(status);

const invalid = (message: string) => new HoldfastError({ code: "invalid_option", message });
const missing = (id: string) =>
  new HoldfastError({ code: "schedule_not_found", message: `there is no schedule ${id}` });
const exists = (id: string) =>
  new HoldfastError({
    code: "schedule_exists",
    message: `there is a schedule ${id} already: update it, or create it with replace`,
  });
const over = (id: string, { status }: InstanceSummary) =>
  new HoldfastError({
    code: "schedule_ended",
    message: `schedule ${id} has ended (${status}): use another id, or the same one when its record has been removed`,
  });
