/** What a test learns from the streams alone, and what the checker (`shared/verify`) says of them. */
import { expect } from "vitest";
import { type Commit, DeadLetter, type HistoryEvent } from "../../../schemas/index.ts";
import { decode } from "../../../shared/bus/index.ts";
import { HistoryStore } from "../../../shared/history/index.ts";
import { silent, systemRuntime } from "../../../shared/runtime/index.ts";
import {
  historyViolations,
  type VerifyOptions,
  verify,
  violationLines,
} from "../../../shared/verify/index.ts";
import { type Stack, until } from "../processes/stack.ts";

export class Streams {
  readonly #stack: Stack;
  readonly #store: HistoryStore;

  constructor(stack: Stack) {
    const { bus, names } = stack;
    this.#stack = stack;
    const runtime = systemRuntime(silent);
    this.#store = new HistoryStore({
      ...{ bus, names, runtime, layout: "shared", maxOwnStreams: 0, shards: 16, replicas: 1 },
    });
  }

  async history(instanceId: string): Promise<Commit[]> {
    const commits = await this.#store.readAll(instanceId);
    expect(commits, `history of ${instanceId}`).toBeDefined();
    return commits ?? [];
  }

  async events(instanceId: string): Promise<HistoryEvent[]> {
    return (await this.history(instanceId)).flatMap((commit) => commit.events);
  }

  async kinds(instanceId: string): Promise<string[]> {
    return (await this.events(instanceId)).map((event) => event.kind);
  }

  /** Waits until such an event is in the history of an instance, which may have none yet. */
  async untilKind(instanceId: string, kind: HistoryEvent["kind"], timeoutMs?: number): Promise<void> {
    await until(
      `${kind} in the history of ${instanceId}`,
      async () => {
        const commits = (await this.#store.readAll(instanceId)) ?? [];
        return commits.some((commit) => commit.events.some((event) => event.kind === kind));
      },
      timeoutMs,
    );
  }

  /** What the checker says of the installation, or of one instance: nothing. */
  async checkLaws(options: Omit<VerifyOptions, "bus" | "names"> = {}): Promise<void> {
    const { bus, names } = this.#stack;
    // What dead workers leave behind is cleared away in a minute: too long to wait for in each test.
    const report = await verify({ orphanMs: Number.POSITIVE_INFINITY, ...options, bus, names });
    expect(violationLines(report)).toEqual([]);
  }

  /** That each of these instances has come to its end exactly once, and what the checker says of its history. */
  async checkEnded(instanceIds: readonly string[], end = "instance.completed"): Promise<void> {
    for (const id of instanceIds) {
      const commits = await this.history(id);
      expect(historyViolations(commits), id).toEqual([]);
      const kinds = commits.flatMap((commit) => commit.events.map((event) => event.kind));
      expect(kinds.at(-1), `end of ${id}`).toBe(end);
      expect(
        kinds.filter((kind) => kind === "instance.started"),
        `starts of ${id}`,
      ).toHaveLength(1 + kinds.filter((kind) => kind === "instance.continued").length);
    }
  }

  /**
   * I9: nothing is left in a queue; and then no law is broken anywhere. Work that was sent to a dead worker is purged
   * when its registration has expired, after 15 s.
   */
  async untilQuiet(timeoutMs = 40_000): Promise<void> {
    const { bus, names } = this.#stack;
    const queues = [names.inboxStream, names.activitiesStream, names.claimsStream, names.sessionsStream];
    let left = "";
    await until(
      "empty queues",
      async () => {
        const infos = await Promise.all(queues.map((queue) => bus.streamInfo(queue)));
        left = infos.map((info) => `${info?.name} ${info?.messages}`).join(", ");
        return infos.every((info) => info?.messages === 0);
      },
      timeoutMs,
    ).catch(async (error: unknown) => {
      const rest = await bus.read(names.sessionsStream, names.allSessionWork);
      const work = rest?.map(({ subject, body }) => `${subject} ${new TextDecoder().decode(body)}`) ?? [];
      throw new Error([`${String(error)}: ${left}`, ...work].join("\n"));
    });
    await this.checkLaws();
  }

  async deadLetters(): Promise<DeadLetter[]> {
    const { bus, names } = this.#stack;
    const stored = (await bus.read(names.deadStream, names.deadSubjects[0] ?? "")) ?? [];
    return stored.map(({ body }) => {
      const letter = decode(DeadLetter, body);
      if (letter.kind === "invalid") throw new Error(letter.message);
      return letter.value;
    });
  }
}
