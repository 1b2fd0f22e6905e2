/** Messages to the keeper of a pool of sessions, or of a keyed session: an instance joins, or leaves. */
import {
  type Borrower,
  EventId,
  InstanceId,
  type KeyedSignal,
  type KeyedSpec,
  keeperOf,
  keyedOrchestration,
  keyedSpecOf,
  lenderOrchestration,
  type PoolSignal,
  poolOrchestration,
  poolSignal,
  useOf,
} from "../../../schemas/index.ts";
import { type EffectOf, executionOf, type Publishing } from "./effect-target.ts";
import { publishEffect } from "./publish.ts";

export async function joinPool(by: Publishing, effect: EffectOf<"join-pool">): Promise<unknown> {
  const { names } = by.deps;
  const { outbox } = by.target;
  const { instanceId, execution } = by.state;
  const { poolId, pool, id } = effect;
  const { min, max, lingerMs, sharing } = pool;
  const keeper = keeperOf(poolId);
  const use = { instanceId: InstanceId.parse(instanceId), execution, of: EventId.parse(id) };
  if (pool.keyed) return joinKey(by, use, keyedSpecOf(poolId, pool));
  const borrower = sharing === "exclusive" ? use : undefined;
  const signal: PoolSignal = { kind: "join", user: useOf(use), min, max, lingerMs, borrower };
  await publishEffect(
    outbox,
    names.start(keeper, borrower ? lenderOrchestration : poolOrchestration),
    { poolId, pool },
    { msgId: `pool-${executionOf(by)}-${id}` },
  );
  return publishEffect(outbox, names.signal(keeper, poolSignal), signal, {
    msgId: `join-${executionOf(by)}-${id}`,
  });
}

async function joinKey(
  { deps: { names }, target: { outbox } }: Publishing,
  borrower: Borrower,
  spec: KeyedSpec,
): Promise<unknown> {
  const keeper = keeperOf(spec.sessionId);
  const user = useOf(borrower);
  await publishEffect(outbox, names.start(keeper, keyedOrchestration), {}, { msgId: `start-${keeper}` });
  const signal: KeyedSignal = { kind: "join", user, borrower, spec };
  return publishEffect(outbox, names.signal(keeper, poolSignal), signal, { msgId: `join-${user}` });
}

export function leavePool(by: Publishing, { poolId, id }: EffectOf<"leave-pool">): Promise<unknown> {
  const { instanceId, execution } = by.state;
  const signal: PoolSignal = { kind: "leave", user: useOf({ instanceId, execution, of: id }) };
  return publishEffect(by.target.outbox, by.deps.names.signal(keeperOf(poolId), poolSignal), signal, {
    msgId: `leave-${executionOf(by)}-${id}`,
  });
}
