/** Checks that read the streams alone and believe nothing the engine says of itself (faults.md, I1–I10). */
import { expect } from "vitest";
import { type Commit, DeadLetter, type HistoryEvent } from "../../schemas/index.ts";
import { decode } from "../../shared/bus/index.ts";
import { HistoryStore } from "../../shared/history/index.ts";
import { silent, systemRuntime } from "../../shared/runtime/index.ts";
import { checkHistory } from "../../shared/testing/history/history-laws.ts";
import { type Stack, until } from "./stack.ts";

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

  /** I1–I4 for each of these instances, and that it has come to its end exactly once. */
  async checkEnded(instanceIds: readonly string[], end = "instance.completed"): Promise<void> {
    for (const id of instanceIds) {
      const commits = await this.history(id);
      checkHistory(commits);
      const kinds = commits.flatMap((commit) => commit.events.map((event) => event.kind));
      expect(kinds.at(-1), `end of ${id}`).toBe(end);
      expect(
        kinds.filter((kind) => kind === "instance.started"),
        `starts of ${id}`,
      ).toHaveLength(1 + kinds.filter((kind) => kind === "instance.continued").length);
    }
  }

  /** I9: nothing is left in a queue. */
  async untilQuiet(timeoutMs = 20_000): Promise<void> {
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
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${left}`);
    });
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
