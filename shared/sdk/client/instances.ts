/** The read model of instances for users: values instead of references. */
import {
  type BlobRef,
  InstanceStatus,
  InstanceSummary,
  isEngineOrchestration,
  type Payload,
  terminalStatuses,
} from "../../../schemas/index.ts";
import { Bucket, type Bus, headerNames, type Payloads, type Subjects, TypedBucket } from "../../bus/index.ts";
import { refuseUnknownOptions } from "../../definitions/index.ts";
import { Fault, HoldfastError, isFault } from "../../errors/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { Newest } from "../instance/newest.ts";

/** How far an orchestrator's clock may be from the server's without an instance missing in a list. */
const clockSlackMs = 2000;

type Values = "input" | "output" | "customStatus";

/** A summary with the user's values in place of references. */
export type InstanceView = Omit<InstanceSummary, Values | "v"> & {
  [K in Values]?: unknown;
} & {
  /** Values that were not fetched because they exceed `largestBytes`, and where they are stored. */
  leftOut?: { [K in Values]?: BlobRef };
};

/** Which values of an instance to read. */
export interface ViewOptions {
  /** Larger values are left out. Default: no limit. */
  largestBytes?: number | undefined;
}

/** Which instances to list. */
export interface ListOptions {
  status?: InstanceStatus | InstanceStatus[] | undefined;
  /** Name of the orchestration. */
  name?: string | undefined;
  /** Prefix of the instance id. */
  prefix?: string | undefined;
  /**
   * True: only the instances by which the engine keeps schedules, pools, keyed sessions and limits. They are
   * left out otherwise, unless `name` names one of their orchestrations.
   */
  engine?: boolean | undefined;
  /** Newest first, at most this many. Default 100. */
  limit?: number | undefined;
}

/** False if an instance id has only received signals: they wait for a start. */
export const wasStarted = (summary: InstanceSummary): boolean =>
  summary.status !== "pending" || summary.name !== undefined;

export const isTerminal = (status: InstanceStatus): boolean => terminalStatuses.includes(status);

const unreadable = (instanceId: string): Fault =>
  new Fault("transient", {
    code: "entry_unreadable",
    message: `the register entry of instance ${instanceId} cannot be read`,
    hint: "If a newer version wrote it, use a client of that version. Otherwise the engine rewrites it from the history within minutes.",
  });

export class Instances {
  readonly #bus: Bus;
  readonly #names: Subjects;
  readonly #payloads: Payloads;
  readonly #bucket: TypedBucket<InstanceSummary>;

  constructor(bus: Bus, names: Subjects, payloads: Payloads, runtime: Runtime) {
    this.#bus = bus;
    this.#names = names;
    this.#payloads = payloads;
    const bucket = new Bucket(bus, names.bucket("instances"), { random: runtime.random });
    this.#bucket = new TypedBucket<InstanceSummary>(bucket, InstanceSummary, runtime.announce);
  }

  /** Throws a transient fault if the entry cannot be read: the watcher has it rewritten (E2), so callers retry. */
  async summary(instanceId: string): Promise<InstanceSummary | undefined> {
    const looked = await this.#bucket.look(instanceId);
    if (looked.kind === "unreadable") throw unreadable(instanceId);
    return looked.kind === "entry" ? looked.entry.value : undefined;
  }

  /**
   * Also finds an instance that was accepted and not yet processed: its start is still in the inbox, or delayed. The
   * orchestrator writes the summary before it acknowledges the inbox message, so an instance that is in
   * none of these, looked up in this order and once more, does not exist.
   */
  async find(instanceId: string): Promise<InstanceSummary | undefined> {
    const known = await this.summary(instanceId);
    if (known && wasStarted(known)) return known;
    const waiting = await this.#bus.read(this.#names.inboxStream, this.#names.inboxOf(instanceId));
    return (
      this.#accepted(instanceId, waiting ?? []) ??
      this.#accepted(instanceId, await this.#delayed(instanceId)) ??
      (await this.summary(instanceId))
    );
  }

  /** The start of an instance that begins later, as the inbox will have it. */
  async #delayed(instanceId: string): Promise<{ subject: string; at: number }[]> {
    const names = this.#names;
    // Not every client may look at schedules.
    const starts = await this.#bus
      .read(names.timersStream, names.delayedStart(instanceId))
      .catch(() => undefined);
    return (starts ?? []).map(({ headers, at }) => ({
      subject: names.inboxOfFired(headers[headerNames.scheduleTarget] ?? ""),
      at,
    }));
  }

  #accepted(instanceId: string, waiting: { subject: string; at: number }[]): InstanceSummary | undefined {
    let accepted: InstanceSummary | undefined;
    for (const message of waiting) {
      const verb = this.#names.parseInbox(message.subject)?.verb;
      if (verb?.kind !== "start" && verb?.kind !== "signal") continue;
      accepted ??= InstanceSummary.parse({
        v: 1,
        instanceId,
        status: "pending",
        execution: 0,
        events: 0,
        updatedAt: message.at,
      });
      if (verb.kind === "start") return InstanceSummary.parse({ ...accepted, name: verb.name });
    }
    return accepted;
  }

  async view(
    summary: InstanceSummary,
    { largestBytes = Number.POSITIVE_INFINITY }: ViewOptions = {},
  ): Promise<InstanceView> {
    const { v: _, input, output, customStatus, ...plain } = summary;
    const view: InstanceView = plain;
    const fits = (value: Values, payload: Payload | undefined): payload is Payload => {
      if (!payload || !("blob" in payload) || payload.blob.bytes <= largestBytes)
        return payload !== undefined;
      view.leftOut = { ...view.leftOut, [value]: payload.blob };
      return false;
    };
    if (fits("input", input)) view.input = await this.#unwrapIfThere(input);
    if (fits("output", output)) view.output = await this.#payloads.unwrap(output);
    if (fits("customStatus", customStatus)) view.customStatus = await this.#unwrapIfThere(customStatus);
    return view;
  }

  /** Undefined if the value is missing: the state of an instance can be shown without its input. */
  async #unwrapIfThere(payload: Payload): Promise<unknown> {
    try {
      return await this.#payloads.unwrap(payload);
    } catch (error) {
      if (isFault(error, "contract")) return undefined;
      throw error;
    }
  }

  /** Big values are left out: a list does not fetch blobs. */
  async list(options: ListOptions): Promise<InstanceView[]> {
    refuseUnknownOptions("list()", options, listOptionNames);
    const { name, prefix = "", engine = isEngineOrchestration(name), limit = 100 } = options;
    const statuses = options.status === undefined ? undefined : [options.status].flat();
    for (const status of statuses ?? []) {
      if (!InstanceStatus.options.includes(status))
        throw invalid(
          `status ${JSON.stringify(status)}: must be one of ${InstanceStatus.options.join(", ")}`,
        );
    }
    if (limit !== Number.POSITIVE_INFINITY && !(Number.isInteger(limit) && limit > 0))
      throw invalid(`limit ${String(limit)}: it must be a whole number above 0`);
    const fits = (summary: InstanceSummary) =>
      (!statuses || statuses.includes(summary.status)) &&
      (name === undefined || summary.name === name) &&
      isEngineOrchestration(summary.name) === engine;
    const found = new Newest<InstanceSummary>(limit, newestFirst);
    await this.#bucket.latestFirst((page) => {
      for (const { key, value } of page) {
        if (key.startsWith(prefix)) found.put(key, fits(value) ? value : undefined);
      }
      return !olderThanAll(page, found.oldest());
    });
    return found.sorted().map((summary) => {
      const { v: _, input, output, customStatus, ...plain } = summary;
      return { ...plain, ...inlineValues({ input, output, customStatus }) };
    });
  }
}

const listOptionNames: Record<keyof ListOptions, true> = {
  status: true,
  name: true,
  prefix: true,
  engine: true,
  limit: true,
};

const invalid = (message: string) => new HoldfastError({ code: "invalid_option", message });

const since = (summary: InstanceSummary): number => summary.startedAt ?? summary.updatedAt;

const newestFirst = (a: InstanceSummary, b: InstanceSummary): number =>
  since(b) - since(a) || (a.instanceId < b.instanceId ? -1 : 1);

/**
 * True if no entry written before this page can be among the newest: an instance's entry is written after its start.
 * `oldest` is undefined as long as there is room for more.
 */
function olderThanAll(page: readonly { at: number }[], oldest: InstanceSummary | undefined): boolean {
  const [first] = page;
  return first !== undefined && oldest !== undefined && first.at + clockSlackMs < since(oldest);
}

function inlineValues(values: Record<Values, Payload | undefined>): { [K in Values]?: unknown } {
  const inline: { [K in Values]?: unknown } = {};
  for (const key of ["input", "output", "customStatus"] as const) {
    const payload = values[key];
    if (payload && "json" in payload) inline[key] = payload.json;
  }
  return inline;
}
