import { Commit, type HistoryEvent } from "../../schemas/index.ts";
import type { Bus, PublishOptions, PublishOutcome } from "../../shared/bus/bus.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { HistoryStore, HistoryStoreOptions, Position } from "../../shared/history/index.ts";
import type { Happening } from "../../shared/runtime/index.ts";

/** The store under test, and writers of histories. */
export interface HistoryRig {
  readonly bus: Bus;
  readonly names: Subjects;
  readonly happenings: Happening[];
  storeOn(carrier: Bus, options?: Partial<HistoryStoreOptions>): HistoryStore;
  newId(): string;
  begin(store: HistoryStore, id: string, ...events: object[]): Promise<Position>;
  go(store: HistoryStore, position: Position, commit: Commit, startsExecution?: boolean): Promise<Position>;
}

let commits = 0;
export const commitOf = (instanceId: string, execution: number, ...events: object[]): Commit =>
  Commit.parse({
    v: 1,
    commitId: `c${++commits}`,
    instanceId,
    execution,
    at: 1_700_000_000_000,
    inbox: [],
    events,
  });
export const started = (id = 1): object => ({
  id,
  kind: "instance.started",
  name: "n",
  input: { json: { deep: [1, "ü"] } },
});
export const signal = (id: number): object => ({
  id,
  kind: "signal.received",
  name: "go",
  payload: { json: id },
});
export const completed = (id: number): object => ({ id, kind: "instance.completed", output: { json: null } });
export const kinds = (list: Commit[] | undefined): HistoryEvent["kind"][] | undefined =>
  list?.flatMap((commit) => commit.events.map((event) => event.kind));

/** A bus whose next answers to history publishes are lost: after storing, before storing. */
export function losing(bus: Bus, losses: ("stored" | "unsent")[]): Bus {
  return new Proxy(bus, {
    get(target, key) {
      if (key === "publish") {
        return async (
          subject: string,
          body: Uint8Array,
          options?: PublishOptions,
        ): Promise<PublishOutcome> => {
          const loss = options?.expectLastSeq === undefined ? undefined : losses.shift();
          if (loss !== "unsent") {
            const outcome = await target.publish(subject, body, options);
            if (loss === undefined) return outcome;
          }
          return { kind: "unknown" };
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A bus that dies at its nth write. */
export function dyingAt(bus: Bus, nth: number): Bus {
  let writes = 0;
  const writing = new Set<string | symbol>(["publish", "deleteStream", "purge", "ensureStream"]);
  return new Proxy(bus, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (writing.has(key) && ++writes >= nth) throw new Error("died");
        return value.apply(target, args);
      };
    },
  });
}

/** A bus on which something happens before the next history is read. */
export function beforeReading(bus: Bus, happens: () => Promise<void>): Bus {
  let happened = false;
  return new Proxy(bus, {
    get(target, key) {
      if (key === "read" && !happened) {
        happened = true;
        return async (...args: Parameters<Bus["read"]>) => {
          await happens();
          return target.read(...args);
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
