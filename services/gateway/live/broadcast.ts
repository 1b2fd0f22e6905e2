/**
 * Sends live updates to many pages. Each batch is serialised once per topic and sent to every page that
 * follows the topic. A page that cannot keep up misses batches and gets a request to load again; batches
 * never pile up here.
 */

import { hiderOf } from "../security/index.ts";
import type { LiveBatch } from "./live-view.ts";
import { InstanceRow, SessionRow, WorkerRow } from "./rows.ts";

export const topics = ["instances", "sessions", "workers", "overview"] as const;
export type Topic = (typeof topics)[number];

export interface Listener {
  topics: ReadonlySet<Topic>;
  /** False: users' values are sent as shapes. */
  payloads: boolean;
  /** Resolves when the page can take more. */
  write(text: string): Promise<void>;
  close(): void;
}

interface Seat {
  listener: Listener;
  writing: boolean;
  /** Batches that arrived during the last write; `missed` if they were too many. */
  waiting: string | "missed";
}

const mostWaiting = 256 * 1024;

/** At most this many rows per update: only the latest are sent, with a note that there are more. */
const mostRows = 100;

export class Broadcast {
  readonly #seats = new Set<Seat>();

  get size(): number {
    return this.#seats.size;
  }

  wanted(topic: Topic): boolean {
    for (const seat of this.#seats) if (seat.listener.topics.has(topic)) return true;
    return false;
  }

  join(listener: Listener): { leave(): void; send(event: string, data: unknown): void } {
    const seat: Seat = { listener, writing: false, waiting: "" };
    this.#seats.add(seat);
    return {
      leave: () => this.#seats.delete(seat),
      send: (event, data) => this.#give(seat, frame(event, data)),
    };
  }

  batch(batch: LiveBatch): void {
    if (batch.instances.length > 0) {
      this.send("instances", () => ({
        rows: latest(batch.instances),
        more: batch.instances.length > mostRows,
      }));
    }
    if (batch.sessions.length + batch.sessionsGone.length > 0) {
      this.send("sessions", () => ({
        rows: batch.sessions.slice(-mostRows),
        gone: batch.sessionsGone,
        more: batch.sessions.length > mostRows,
      }));
    }
    if (batch.workers.length + batch.workersGone.length > 0) {
      this.send("workers", () => ({ rows: batch.workers, gone: batch.workersGone }));
    }
  }

  send(topic: Topic, data: () => unknown): void {
    let [open, hidden]: (string | undefined)[] = [];
    for (const seat of this.#seats) {
      if (!seat.listener.topics.has(topic)) continue;
      if (seat.listener.payloads) this.#give(seat, (open ??= frame(topic, data())));
      else this.#give(seat, (hidden ??= frame(topic, withoutValues(topic, data()))));
    }
  }

  /** Keeps proxies from closing the connection, and detects closed connections. */
  ping(): void {
    for (const seat of this.#seats) this.#give(seat, ": still here\n\n");
  }

  close(): void {
    for (const seat of this.#seats) seat.listener.close();
    this.#seats.clear();
  }

  #give(seat: Seat, text: string): void {
    if (seat.writing) {
      const tooMuch = seat.waiting === "missed" || seat.waiting.length + text.length > mostWaiting;
      seat.waiting = tooMuch ? "missed" : seat.waiting + text;
      return;
    }
    seat.writing = true;
    void seat.listener
      .write(text)
      .catch(() => this.#seats.delete(seat)) // the page closed the connection; its listener is removed elsewhere
      .finally(() => {
        seat.writing = false;
        const { waiting } = seat;
        seat.waiting = "";
        if (waiting !== "" && this.#seats.has(seat)) {
          this.#give(seat, waiting === "missed" ? frame("resync", {}) : waiting);
        }
      });
  }
}

const hideRow = {
  instances: hiderOf(InstanceRow),
  sessions: hiderOf(SessionRow),
  workers: hiderOf(WorkerRow),
  overview: undefined,
};

function withoutValues(topic: Topic, data: unknown): unknown {
  const hide = hideRow[topic];
  if (!hide || typeof data !== "object" || data === null || !("rows" in data)) return data;
  return { ...data, rows: Array.isArray(data.rows) ? data.rows.map(hide) : [] };
}

export const frame = (event: string, data: unknown): string =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

const latest = (rows: readonly InstanceRow[]): readonly InstanceRow[] =>
  rows.length <= mostRows ? rows : rows.slice(-mostRows);
