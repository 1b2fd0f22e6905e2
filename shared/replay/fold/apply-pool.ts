/** Uses of pools: the instance joins, gets a member if the pool is exclusive, and leaves. */
import type { HistoryEvent } from "../../../schemas/index.ts";
import { taskEnded } from "./apply-task.ts";
import type { Effect } from "./effects.ts";
import { holderOf, notifyGrantees } from "./session-effects.ts";
import { type InstanceState, sessionTasks } from "./state.ts";

type PoolEvent = Extract<HistoryEvent, { kind: `pool.${string}` }>;

export function applyPool(state: InstanceState, event: PoolEvent): Effect[] {
  switch (event.kind) {
    case "pool.joined": {
      const { poolId, pool, id } = event;
      state.pools.set(id, { poolId, member: undefined });
      return [{ kind: "join-pool", poolId, pool, id }];
    }
    case "pool.lent": {
      const use = state.pools.get(event.of);
      if (!use) return [];
      use.member = event.member.sessionId;
      state.sessions.set(event.member.sessionId, { ...event.member });
      return [];
    }
    case "pool.left": {
      const id = event.of ?? [...state.pools].find(([, { poolId }]) => poolId === event.poolId)?.[0];
      return id === undefined ? [] : leavePool(state, id);
    }
  }
}

/**
 * A member is known exactly while the instance has it. Its work is cancelled here; the session lives on for
 * other users.
 */
export function leavePool(state: InstanceState, id: number): Effect[] {
  const use = state.pools.get(id);
  if (!use) return [];
  state.pools.delete(id);
  const left: Effect = { kind: "leave-pool", poolId: use.poolId, id };
  const session = use.member === undefined ? undefined : state.sessions.get(use.member);
  if (!session) return [left];
  const effects: Effect[] = [];
  for (const task of sessionTasks(state, session.sessionId)) {
    effects.push({ kind: "cancel-task", task, on: holderOf(state, task) }, ...taskEnded(state, task.id));
  }
  state.sessions.delete(session.sessionId);
  return [...effects, ...notifyGrantees(state, { ...session, phase: { kind: "closed" } }, undefined), left];
}
