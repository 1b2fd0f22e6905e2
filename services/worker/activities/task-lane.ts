/**
 * Receives tasks that orchestrators send straight to this worker, and answers which of them it holds. The
 * worker takes only tasks that can start at once: others wait in the queue, where any worker finds them.
 */
import {
  type ActivityTask,
  type LaneHoldings,
  LaneQuestion,
  LaneTasks,
  laneTasksHeader,
  WorkerId,
} from "../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../shared/bus/index.ts";
import { derivedCapability } from "../../../shared/capabilities/index.ts";
import { once, type Service } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { JointAnswer, LaneDelivery, LanePath, soonMs } from "../lane/index.ts";
import type { Feed } from "./pulling/feed.ts";
import { decodeTask } from "./refusing/decode-task.ts";
import { attemptKey } from "./running/held-task.ts";

interface TaskLaneInit {
  deps: WorkerDeps;
  feeds: readonly Feed[];
  /** Returns false if the task cannot start at once. */
  onTask(task: ActivityTask, delivery: LaneDelivery, feed: Feed): boolean;
  /**
   * The task's capability if this worker holds the attempt, or has reported it through the inbox; "" if the task
   * had none.
   */
  shown(key: string): string | undefined;
}

const queueGroup = "workers";

export class TaskLane implements Service {
  readonly #init: TaskLaneInit;
  #tasks: Stoppable[] = [];
  #questions: Stoppable[] = [];

  constructor(init: TaskLaneInit) {
    this.#init = init;
  }

  listen = once(async () => {
    const { bus, names, identity } = this.#init.deps;
    this.#questions = await Promise.all([
      bus.subscribe(names.laneOfHoldings(identity.workerId), {}, (message) => this.#answerQuestion(message)),
      bus.subscribe(names.laneOfSeekers, {}, (message) => this.#answerIfHeld(message)),
    ]);
  });

  async start(): Promise<void> {
    const { deps, feeds } = this.#init;
    const { bus, names } = deps;
    await this.listen();
    this.#tasks = await Promise.all(
      feeds.flatMap((feed) => {
        const { queue, name } = feed.activity;
        const onTask = (message: CoreMessage) => this.#receive(message, feed);
        return [
          bus.subscribe(names.laneOfActivity(queue, name), { queue: queueGroup }, onTask),
          bus.subscribe(names.laneOfWorker(deps.identity.workerId, queue, name), {}, onTask),
        ];
      }),
    );
  }

  /** Takes no more tasks; questions about held tasks are still answered. */
  close = once(async () => {
    await Promise.all(this.#tasks.map((subscription) => subscription.stop()));
  });

  stop = once(async () => {
    await this.close();
    await Promise.all(this.#questions.map((subscription) => subscription.stop()));
  });

  #receive(message: CoreMessage, feed: Feed): void {
    if (message.headers[laneTasksHeader] !== undefined) return this.#receiveSeveral(message, feed);
    const { deps, onTask } = this.#init;
    const path = new LanePath(deps, message);
    const decoded = decodeTask(message, feed.activity);
    // The task comes by the queue next, and is dead-lettered there with the reason.
    if (decoded.kind === "invalid") return path.refuse();
    const delivery = new LaneDelivery(message, path, decoded.task);
    if (!onTask(decoded.task, delivery, feed)) path.refuse();
  }

  /**
   * Takes what can start at once. Code that keeps the processor busy holds up the tasks behind it, and the
   * answer: after a moment the rest is left to other workers.
   */
  #receiveSeveral(message: CoreMessage, feed: Feed): void {
    const { deps, onTask } = this.#init;
    const { clock } = deps.runtime;
    const decoded = decode(LaneTasks, message.body);
    if (decoded.kind === "invalid") return new LanePath(deps, message).refuse();
    const { tasks } = decoded.value;
    const answer = new JointAnswer(message, tasks.length, deps.bus.maxPayloadBytes);
    const until = clock.monotonic() + soonMs;
    tasks.forEach((task, place) => {
      const reply = (body: Uint8Array) => answer.set(place, body);
      const path = new LanePath(deps, { headers: message.headers, reply }, answer.longestBytes);
      const delivery = new LaneDelivery(message, path, task);
      const mayStart = task.name === feed.activity.name && clock.monotonic() <= until;
      if (!mayStart || !onTask(task, delivery, feed)) path.refuse();
    });
  }

  #answerQuestion({ body, reply }: CoreMessage): void {
    const question = decode(LaneQuestion, body);
    if (question.kind === "ok") reply?.(encode(this.#holdings(question.value)));
  }

  #answerIfHeld({ body, reply }: CoreMessage): void {
    const question = decode(LaneQuestion, body);
    if (question.kind === "invalid") return;
    const holdings = this.#holdings(question.value);
    if (holdings.missing.length === 0) reply?.(encode(holdings));
  }

  #holdings({ tasks }: LaneQuestion): LaneHoldings {
    const missing: number[] = [];
    const capabilities: string[] = [];
    for (const [place, task] of tasks.entries()) {
      const shown = this.#init.shown(attemptKey(task));
      if (shown === undefined) missing.push(place);
      else capabilities.push(shown === "" ? "" : derivedCapability(shown, "held"));
    }
    const workerId = WorkerId.parse(this.#init.deps.identity.workerId);
    return { v: 1, workerId, missing, ...(capabilities.some((one) => one !== "") && { capabilities }) };
  }
}
