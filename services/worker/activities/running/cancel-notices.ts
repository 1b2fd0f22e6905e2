/**
 * Notices that an instance no longer waits for a task. They are hints: if one is lost, the task runs to its
 * end for nothing. A notice without the proof that is derived from the task's capability is ignored (C1).
 */
import { type ActivityTask, CancelNotice } from "../../../../schemas/index.ts";
import { decode, type Stoppable } from "../../../../shared/bus/index.ts";
import { derivedCapability } from "../../../../shared/capabilities/index.ts";
import { once, type Service } from "../../../../shared/runtime/index.ts";
import type { WorkerDeps } from "../../deps.ts";

/** Names one task over all its attempts. */
export const taskKey = (task: Pick<ActivityTask, "instanceId" | "execution" | "of">): string =>
  `${task.instanceId}.${task.execution}.${task.of}`;

type Cancellable = Pick<ActivityTask, "instanceId" | "execution" | "of" | "capability">;

/**
 * Returns true if the notice names the task and carries its proof, which only the sender and the holder of
 * the task know.
 */
export type IsCancelled = (task: Cancellable) => boolean;

const shownFor = ({ capability }: Cancellable): string | undefined =>
  capability === undefined ? undefined : derivedCapability(capability, "cancel");

const noticeKey = (task: Parameters<typeof taskKey>[0], shown: string | undefined): string =>
  shown === undefined ? taskKey(task) : `${taskKey(task)}.${shown}`;

/** For tasks cancelled while they wait in a queue. Short, because instance ids may be used again. */
const rememberedMs = 60_000;
const mostRemembered = 10_000;

export class CancelNotices implements Service {
  readonly #deps: Pick<WorkerDeps, "bus" | "names" | "runtime">;
  readonly #onCancel: (isCancelled: IsCancelled) => void;
  readonly #seen = new Map<string, number>();
  #subscription: Stoppable | undefined;

  constructor(
    deps: Pick<WorkerDeps, "bus" | "names" | "runtime">,
    onCancel: (isCancelled: IsCancelled) => void,
  ) {
    this.#deps = deps;
    this.#onCancel = onCancel;
  }

  async start(): Promise<void> {
    const { bus, names } = this.#deps;
    this.#subscription = await bus.subscribe(names.cancels, {}, (message) => this.#receive(message.body));
  }

  stop = once(async () => {
    await this.#subscription?.stop();
  });

  /** True if a notice for this task came after it was scheduled. */
  covers(task: ActivityTask): boolean {
    if (this.#seen.size === 0) return false;
    const receivedAt = this.#seen.get(noticeKey(task, shownFor(task)));
    return (
      receivedAt !== undefined &&
      receivedAt >= task.scheduledAt &&
      receivedAt > this.#deps.runtime.clock.now() - rememberedMs
    );
  }

  #receive(body: Uint8Array): void {
    const notice = decode(CancelNotice, body);
    if (notice.kind === "invalid") {
      // The sender broke the contract; the worker cannot act on the notice and announces it.
      const message = `not a cancel notice: ${notice.message}`;
      this.#deps.runtime.announce({ kind: "fault", where: "worker.cancels", code: "bad_notice", message });
      return;
    }
    const { capability } = notice.value;
    const key = taskKey(notice.value);
    this.#remember(noticeKey(notice.value, capability));
    this.#onCancel((task) => taskKey(task) === key && (!task.capability || shownFor(task) === capability));
  }

  #remember(key: string): void {
    const now = this.#deps.runtime.clock.now();
    this.#seen.delete(key);
    this.#seen.set(key, now);
    for (const [oldest, receivedAt] of this.#seen) {
      if (receivedAt > now - rememberedMs && this.#seen.size <= mostRemembered) return;
      this.#seen.delete(oldest);
    }
  }
}
