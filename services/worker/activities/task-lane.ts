/**
 * Where orchestrators hand tasks to this worker directly, and ask what became of them. Only what can start at once is
 * taken: everything else waits in the queue, where any worker finds it.
 */
import { type ActivityTask, type LaneHoldings, LaneQuestion } from "../../../schemas/index.ts";
import { type CoreMessage, decode, encode, type Stoppable } from "../../../shared/bus/index.ts";
import { once, type Service } from "../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../deps.ts";
import { LaneDelivery, LanePath } from "../lane/index.ts";
import { decodeTask } from "./decode-task.ts";
import type { Feed } from "./feed.ts";
import { attemptKey } from "./held-task.ts";

export interface TaskLaneInit {
  deps: WorkerDeps;
  feeds: readonly Feed[];
  /** False where it cannot start at once. */
  onTask(task: ActivityTask, delivery: LaneDelivery, feed: Feed): boolean;
  /** Whether this attempt is in our hands, or was told of by the inbox. */
  has(key: string): boolean;
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
      bus.subscribe(names.laneOfHoldings(identity.workerId), {}, (message) => this.#tell(message)),
      bus.subscribe(names.laneOfSeekers, {}, (message) => this.#found(message)),
    ]);
  });

  async start(): Promise<void> {
    const { deps, feeds } = this.#init;
    const { bus, names } = deps;
    await this.listen();
    this.#tasks = await Promise.all(
      feeds.map((feed) => {
        const subject = names.laneOfActivity(feed.activity.queue, feed.activity.name);
        return bus.subscribe(subject, { queue: queueGroup }, (message) => this.#receive(message, feed));
      }),
    );
  }

  /** No tasks any more; what is held here is still told. */
  close = once(async () => {
    await Promise.all(this.#tasks.map((subscription) => subscription.stop()));
  });

  stop = once(async () => {
    await this.close();
    await Promise.all(this.#questions.map((subscription) => subscription.stop()));
  });

  #receive(message: CoreMessage, feed: Feed): void {
    const { deps, onTask } = this.#init;
    const path = new LanePath(deps, message);
    const decoded = decodeTask(message, feed.activity);
    // By the queue it will be buried with its reason.
    if (decoded.kind === "invalid") return path.refuse();
    const delivery = new LaneDelivery(message, path, decoded.task);
    if (!onTask(decoded.task, delivery, feed)) path.refuse();
  }

  #tell({ body, reply }: CoreMessage): void {
    const question = decode(LaneQuestion, body);
    if (question.kind === "ok") reply?.(this.#holdings(this.#missing(question.value)));
  }

  #found({ body, reply }: CoreMessage): void {
    const question = decode(LaneQuestion, body);
    if (question.kind === "ok" && this.#missing(question.value).length === 0) reply?.(this.#holdings([]));
  }

  #missing({ tasks }: LaneQuestion): number[] {
    return tasks.flatMap((task, place) => (this.#init.has(attemptKey(task)) ? [] : [place]));
  }

  #holdings(missing: number[]): Uint8Array {
    const { workerId } = this.#init.deps.identity;
    return encode({ v: 1, workerId: workerId as LaneHoldings["workerId"], missing } satisfies LaneHoldings);
  }
}
