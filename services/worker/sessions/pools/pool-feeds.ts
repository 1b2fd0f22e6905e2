/** What the members of pools on this worker share: notices of cancelled calls, and the word that we are still at it. */
import { toFailure } from "../../../../shared/errors/index.ts";
import { once, type Timer } from "../../../../shared/runtime/index.ts";
import { CancelNotices } from "../../activities/cancel-notices.ts";
import type { ServerTime } from "../claiming/server-time.ts";
import type { SessionDeps, SessionTiming } from "../session-deps.ts";
import { PoolFeed, type PoolFeedInit } from "./pool-feed.ts";

export class PoolFeeds {
  readonly #deps: SessionDeps;
  readonly #timing: SessionTiming;
  readonly #time: ServerTime;
  readonly #cancels: CancelNotices;
  readonly #feeds = new Set<PoolFeed>();
  #listening: Promise<void> | undefined;
  #keepAlive: Timer | undefined;

  constructor(deps: SessionDeps, timing: SessionTiming, time: ServerTime) {
    this.#deps = deps;
    this.#timing = timing;
    this.#time = time;
    this.#cancels = new CancelNotices(deps, (key) => {
      for (const feed of this.#feeds) feed.cancel(key);
    });
  }

  /** Begins to take the pool's calls for a member that is ready. */
  join(member: Pick<PoolFeedInit, "poolId" | "definition" | "calls">): PoolFeed {
    this.#listening ??= this.#listen();
    const feed = new PoolFeed({
      ...member,
      ...{ deps: this.#deps, timing: this.#timing, time: this.#time, cancels: this.#cancels },
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

  /** They are hints: without them calls run in vain, nothing worse. The next member tries again. */
  async #listen(): Promise<void> {
    try {
      await this.#cancels.start();
    } catch (error) {
      this.#listening = undefined;
      const { code, message } = toFailure(error);
      this.#deps.runtime.announce({ kind: "fault", where: "notices for pools", code, message, error });
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
