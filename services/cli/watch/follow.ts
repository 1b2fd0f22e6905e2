/**
 * Follows an instance and its children: woken by notices, and reading from time to time, since notices may be
 * lost.
 */
import type { Stoppable } from "../../../shared/bus/index.ts";
import { HoldfastError } from "../../../shared/errors/index.ts";
import { sleep, systemClock } from "../../../shared/runtime/index.ts";
import type { HistoryEntry, InstanceView } from "../../../shared/sdk/index.ts";
import type { CliConnection } from "../connection/client-command.ts";
import { type Branch, branchOf } from "./branch.ts";
import type { Tree } from "./tree.ts";

export interface Snapshot {
  tree: Tree;
  /** The recorded events by instance, children included. */
  histories: ReadonlyMap<string, readonly HistoryEntry[]>;
  ended: boolean;
}

export interface FollowOptions {
  signal: AbortSignal;
  /** Reads at least this often. */
  everyMs: number;
  /** How many levels of children are followed. */
  depth: number;
}

/** Per level; further children are listed without being followed. */
const mostChildren = 30;
const shortestPauseMs = 100;

export async function* follow(
  session: Pick<CliConnection, "bus" | "names" | "client">,
  instanceId: string,
  options: FollowOptions,
): AsyncGenerator<Snapshot, void, undefined> {
  const follower = new Follower(session, options);
  try {
    for (;;) {
      const since = systemClock.monotonic();
      const snapshot = await follower.look(instanceId);
      yield snapshot;
      if (snapshot.ended || options.signal.aborted) return;
      await follower.pause(systemClock.monotonic() - since);
      if (options.signal.aborted) return;
    }
  } finally {
    await follower.stop();
  }
}

class Follower {
  readonly #session: Pick<CliConnection, "bus" | "names" | "client">;
  readonly #options: FollowOptions;
  readonly #subscriptions = new Map<string, Promise<Stoppable>>();
  readonly #over = new Map<string, Tree>();
  readonly #histories = new Map<string, readonly HistoryEntry[]>();
  #changed = new AbortController();

  constructor(session: Pick<CliConnection, "bus" | "names" | "client">, options: FollowOptions) {
    this.#session = session;
    this.#options = options;
    options.signal.addEventListener("abort", this.#wake, { once: true });
  }

  async look(instanceId: string): Promise<Snapshot> {
    this.#changed = new AbortController();
    // Subscribes before it reads: an event in between is not missed.
    await this.#listen(instanceId);
    const view = await this.#session.client.status(instanceId);
    const tree = await this.#tree(instanceId, view, this.#options.depth);
    return { tree, histories: this.#histories, ended: tree.branch.endedAt !== undefined };
  }

  /** A long history takes long to read: it is not read again before some time has passed. */
  async pause(tookMs: number): Promise<void> {
    const { signal, everyMs } = this.#options;
    await sleep(systemClock, Math.max(shortestPauseMs, 2 * tookMs), signal);
    if (!this.#changed.signal.aborted) await sleep(systemClock, everyMs, this.#changed.signal);
  }

  async stop(): Promise<void> {
    this.#options.signal.removeEventListener("abort", this.#wake);
    const all = await Promise.all(this.#subscriptions.values());
    await Promise.all(all.map((subscription) => subscription.stop()));
  }

  #wake = (): void => this.#changed.abort();

  async #listen(instanceId: string): Promise<void> {
    const { bus, names } = this.#session;
    let subscription = this.#subscriptions.get(instanceId);
    if (!subscription) {
      subscription = bus.subscribe(names.noticesOf(instanceId), {}, this.#wake);
      this.#subscriptions.set(instanceId, subscription);
    }
    await subscription;
  }

  async #tree(instanceId: string, view: InstanceView | undefined, depth: number): Promise<Tree> {
    const over = this.#over.get(instanceId);
    if (over) return over;
    const entries = await this.#history(instanceId);
    this.#histories.set(instanceId, entries);
    const branch = branchOf(instanceId, entries, view);
    const children = depth > 0 ? await this.#children(branch, depth - 1) : new Map<string, Tree>();
    const tree = { branch, children };
    const settled = [...children.values()].every((child) => child.branch.endedAt !== undefined);
    if (branch.endedAt !== undefined && settled) this.#over.set(instanceId, tree);
    return tree;
  }

  async #children(branch: Branch, depth: number): Promise<Map<string, Tree>> {
    const ids = branch.items.flatMap(({ childId }) => childId ?? []).slice(-mostChildren);
    await Promise.all(ids.map((id) => this.#listen(id)));
    const trees = await Promise.all(ids.map((id) => this.#tree(id, undefined, depth)));
    return new Map(trees.map((tree) => [tree.branch.instanceId, tree]));
  }

  /** Empty for an instance that was accepted and has not begun. */
  async #history(instanceId: string): Promise<readonly HistoryEntry[]> {
    try {
      return await this.#session.client.history(instanceId);
    } catch (error) {
      if (error instanceof HoldfastError && error.code === "instance_not_found") return [];
      throw error;
    }
  }
}
