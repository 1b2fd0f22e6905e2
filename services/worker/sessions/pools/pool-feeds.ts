import { announceFault, once, type Timer } from "../../../../shared/runtime/index.ts";
import { CancelNotices } from "../../activities/index.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { PoolFeed, type PoolFeedInit } from "./pool-feed.ts";

export class PoolFeeds {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #cancels: CancelNotices;
  readonly #feeds = new Set<PoolFeed>();
  #listening: Promise<void> | undefined;
  #keepAlive: Timer | undefined;

  constructor(deps: SessionDeps, timing: SessionTiming) {
    this.#deps = deps;
    this.#timing = timing;
    this.#cancels = new CancelNotices(deps, (isCancelled) => {
      for (const feed of this.#feeds) feed.cancel(isCancelled);
    });
  }

  /** Starts taking the pool's calls for a member that is ready. */
  join(member: Pick<PoolFeedInit, "poolId" | "definition" | "calls">): PoolFeed {
    this.#listening ??= this.#listen();
    const feed = new PoolFeed({
      ...member,
      ...{ deps: this.#deps, timing: this.#timing, cancels: this.#cancels },
      onOver: (over) => this.#feeds.delete(over),
    });
    this.#feeds.add(feed);
    this.#tick();
    return feed;
  }

  stop = once(async () => {
    this.#keepAlive?.cancel();
    for (const feed of this.#feeds) feed.stop();
    await this.#listening;
    await this.#cancels.stop();
  });

  /**
   * Notices are hints: without them cancelled calls run in vain, nothing worse. The next member subscribes
   * again.
   */
  async #listen(): Promise<void> {
    try {
      await this.#cancels.start();
    } catch (error) {
      this.#listening = undefined;
      announceFault(this.#deps.runtime, "notices for pools", error);
    }
  }

  #tick(): void {
    this.#keepAlive ??= this.#deps.runtime.clock.after(this.#deps.config.activities.ackWaitMs / 3, () => {
      this.#keepAlive = undefined;
      for (const feed of this.#feeds) feed.stillAtIt();
      if (this.#feeds.size > 0) this.#tick();
    });
  }
}
