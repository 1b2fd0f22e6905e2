/**
 * Summaries of instances in memory, latest first, for lists with filters and pages. Bounded: the oldest ended
 * instances are dropped first.
 */
import type { InstanceStatus, InstanceSummary } from "../../../schemas/index.ts";
import { terminalStatuses } from "../../../schemas/index.ts";
import { type InstanceRow, instanceRow } from "./rows.ts";

interface InstanceFilter {
  status?: readonly InstanceStatus[] | undefined;
  name?: string | undefined;
  /** Only these orchestrations. */
  names?: readonly string[] | undefined;
  /** The text is not looked for in the words of errors, which callers without payloads do not see. */
  withoutErrors?: boolean | undefined;
  prefix?: string | undefined;
  text?: string | undefined;
  session?: string | undefined;
  parent?: string | undefined;
  /**
   * True: only the engine's own instances. Otherwise they match only if the filter names their orchestration,
   * session or parent.
   */
  engine?: boolean | undefined;
  startedAfter?: number | undefined;
  startedBefore?: number | undefined;
}

export interface Page {
  rows: InstanceRow[];
  /** Pass it to get the next page; absent on the last page. */
  cursor: string | undefined;
  matching: number;
}

export class InstanceIndex {
  readonly #rows = new Map<string, InstanceRow>();
  readonly #counts = noneOfAny();
  readonly #engineCounts = noneOfAny();
  readonly #limit: number;
  /** Oldest first. New instances are appended; any other change means sorting again. */
  #places: Position[] = [];
  #inOrder = true;
  #forgotten = 0;

  constructor(limit = 200_000) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Number of ended instances that were dropped to stay within memory. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Counts of the users' instances. */
  counts(): Counts {
    return { ...this.#counts };
  }

  /** Counts of the engine's own instances. */
  engineCounts(): Counts {
    return { ...this.#engineCounts };
  }

  names(): string[] {
    const names = new Set<string>();
    for (const row of this.#rows.values()) if (row.name) names.add(row.name);
    return [...names].sort();
  }

  get(instanceId: string): InstanceRow | undefined {
    return this.#rows.get(instanceId);
  }

  /** Returns the previous row. */
  set(summary: InstanceSummary): { before: InstanceRow | undefined; row: InstanceRow } {
    const row = instanceRow(summary);
    const before = this.#rows.get(row.instanceId);
    if (before) this.#count(before, -1);
    this.#rows.set(row.instanceId, row);
    this.#count(row, 1);
    if (!before) this.#place(row);
    else if (orderKey(before) !== orderKey(row)) this.#inOrder = false;
    return { before, row };
  }

  delete(instanceId: string): void {
    const row = this.#rows.get(instanceId);
    if (!row) return;
    this.#rows.delete(instanceId);
    this.#count(row, -1);
    this.#inOrder = false;
  }

  /** Call it between batches, not per change. */
  trim(): void {
    if (this.#rows.size <= this.#limit) return;
    const ended = [...this.#latestFirst()].filter((row) => terminalStatuses.includes(row.status));
    for (const row of ended.slice(-(this.#rows.size - this.#limit))) {
      this.delete(row.instanceId);
      this.#forgotten++;
    }
  }

  /**
   * The rows that match a filter. The cursor names the last row seen, so rows that arrive meanwhile do not
   * shift pages.
   */
  page(filter: InstanceFilter, limit: number, cursor?: string): Page {
    const after = cursor === undefined ? undefined : decodeCursor(cursor);
    const rows: InstanceRow[] = [];
    let matching = 0;
    let more = false;
    for (const row of this.#latestFirst()) {
      if (!matches(row, filter)) continue;
      matching++;
      if (after && !isAfter(row, after)) continue;
      if (rows.length < limit) rows.push(row);
      else more = true;
    }
    const last = rows.at(-1);
    return { rows, matching, cursor: more && last ? encodeCursor(last) : undefined };
  }

  #place(row: InstanceRow): void {
    const place = { at: orderKey(row), instanceId: row.instanceId };
    const last = this.#places.at(-1);
    if (last && compare(last, place) > 0) this.#inOrder = false;
    this.#places.push(place);
  }

  *#latestFirst(): Iterable<InstanceRow> {
    if (!this.#inOrder) {
      this.#places = [...this.#rows.values()]
        .map((row) => ({ at: orderKey(row), instanceId: row.instanceId as string }))
        .sort(compare);
      this.#inOrder = true;
    }
    for (let index = this.#places.length - 1; index >= 0; index--) {
      const place = this.#places[index];
      const row = place && this.#rows.get(place.instanceId);
      if (row) yield row;
    }
  }

  #count({ engine, status }: InstanceRow, by: number): void {
    const counts = engine ? this.#engineCounts : this.#counts;
    counts[status] += by;
  }
}

export type Counts = Record<InstanceStatus, number>;

const noneOfAny = (): Counts => ({
  pending: 0,
  running: 0,
  parked: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  terminated: 0,
});

const orderKey = (row: InstanceRow): number => row.startedAt ?? row.updatedAt;

function matches(row: InstanceRow, filter: InstanceFilter): boolean {
  if (filter.status && !filter.status.includes(row.status)) return false;
  if (filter.name !== undefined && row.name !== filter.name) return false;
  if (filter.names && !filter.names.some((name) => name === row.name)) return false;
  if (filter.prefix !== undefined && !row.instanceId.startsWith(filter.prefix)) return false;
  if (filter.session !== undefined && !row.sessions?.some((id) => id === filter.session)) return false;
  if (filter.parent !== undefined && row.parent?.instanceId !== filter.parent) return false;
  if ((row.engine ?? false) !== (filter.engine ?? namesEngine(row, filter))) return false;
  if (filter.startedAfter !== undefined && orderKey(row) < filter.startedAfter) return false;
  if (filter.startedBefore !== undefined && orderKey(row) > filter.startedBefore) return false;
  if (filter.text === undefined) return true;
  const text = filter.text.toLowerCase();
  const errorMessage = filter.withoutErrors ? undefined : row.error?.message;
  return [row.instanceId, row.name, row.error?.code, errorMessage].some((field) =>
    field?.toLowerCase().includes(text),
  );
}

/** A filter that names an orchestration, a session or a parent shows it even if it belongs to the engine. */
const namesEngine = (row: InstanceRow, { name, session, parent }: InstanceFilter): boolean =>
  row.engine === true && [name, session, parent].some((one) => one !== undefined);

type Position = { at: number; instanceId: string };

const compare = (a: Position, b: Position): number =>
  a.at - b.at || (a.instanceId === b.instanceId ? 0 : a.instanceId < b.instanceId ? -1 : 1);

/** Further down the list, which is latest first. */
const isAfter = (row: InstanceRow, position: Position): boolean =>
  compare({ at: orderKey(row), instanceId: row.instanceId }, position) < 0;

const encodeCursor = (row: InstanceRow): string => `${orderKey(row)}_${row.instanceId}`;

function decodeCursor(cursor: string): Position | undefined {
  const match = /^(\d+(?:\.\d+)?)_([A-Za-z0-9_-]{1,128})$/.exec(cursor);
  return match?.[2] ? { at: Number(match[1]), instanceId: match[2] } : undefined;
}

export const isCursor = (cursor: string): boolean => decodeCursor(cursor) !== undefined;
