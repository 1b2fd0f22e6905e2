/** Messages to other instances: children, parents, followers, and instances that are to end. */
import { ChildReport, flowOrchestration, flowSignal, leftOutOrchestration } from "../../../schemas/index.ts";
import { stateOfFirstGeneration } from "../../../shared/replay/index.ts";
import { inboxHeaders } from "../parse-inbox.ts";
import { type EffectOf, executionOf, type Publishing } from "./effect-target.ts";
import { publishEffect } from "./publish.ts";
import { reportEnd } from "./report-end.ts";

export async function startChild(by: Publishing, effect: EffectOf<"start-child">): Promise<void> {
  const { deps, state, target } = by;
  const { instanceId, execution } = state;
  const { childId, name, id } = effect;
  const ofKeeper = state.name === flowOrchestration;
  if (ofKeeper && name !== leftOutOrchestration) {
    if (await deps.keepers.handOver(instanceId, childId, effect.follow !== undefined)) return;
  }
  // Stored as the child's before it is sent: the child may read it when this instance is gone.
  const input = await deps.payloads.adopt(effect.input, childId);
  const headers: Record<string, string> = {};
  if (effect.attached) headers[inboxHeaders.parent] = JSON.stringify({ instanceId, execution, of: id });
  if (effect.follow !== undefined)
    headers[inboxHeaders.follower] = JSON.stringify({ instanceId, signal: effect.follow });
  if (effect.grants.length > 0)
    headers[inboxHeaders.grants] = JSON.stringify(
      deps.generation.allows(2) ? effect.grants : effect.grants.map(stateOfFirstGeneration),
    );
  const capability = deps.capabilities.ofStart(childId, {
    parent: effect.attached ? { instanceId, execution, of: id } : undefined,
    follower: effect.follow === undefined ? undefined : { instanceId, signal: effect.follow },
    granted: effect.grants,
  });
  if (capability !== undefined) headers[inboxHeaders.capability] = capability;
  if ("blob" in input) headers[inboxHeaders.blob] = JSON.stringify(input.blob);
  if (state.traceparent) headers[inboxHeaders.traceparent] = state.traceparent;
  const body = "json" in input ? input.json : undefined;
  await publishEffect(target.outbox, deps.names.start(childId, name), body, {
    msgId: `child-${executionOf(by)}-${id}`,
    headers,
  });
  if (ofKeeper && name === leftOutOrchestration) deps.keepers.leftOut(instanceId, childId);
}

export function cancelChild(by: Publishing, { childId, id }: EffectOf<"cancel-child">): Promise<unknown> {
  const { instanceId, execution } = by.state;
  const reason = { reason: `parent ${instanceId} let go` };
  return publishEffect(by.target.outbox, by.deps.names.verb(childId, "cancel"), reason, {
    msgId: `cancel-${executionOf(by)}-${childId}`,
    headers: { [inboxHeaders.parent]: JSON.stringify({ instanceId, execution, of: id }) },
  });
}

export function requestEnd(by: Publishing, effect: EffectOf<"request-end">): Promise<unknown> {
  const { id, to, verb, reason } = effect;
  return publishEffect(
    by.target.outbox,
    by.deps.names.verb(to, verb),
    reason === undefined ? {} : { reason },
    {
      msgId: `end-${executionOf(by)}-${id}`,
    },
  );
}

export async function tellFollower(by: Publishing, effect: EffectOf<"tell-follower">): Promise<unknown> {
  const { deps, state, target } = by;
  const { instanceId } = state;
  const { follower, status } = effect;
  const messageId = `ended-${executionOf(by)}`;
  if (follower.signal === flowSignal) {
    const end = { instanceId, status, messageId };
    if (await deps.keepers.ended(follower.instanceId, end, target.outbox.signal)) return;
  }
  return reportEnd(deps.names, target.outbox, { instanceId, ...effect }, messageId);
}

export async function reportToParent(by: Publishing, effect: EffectOf<"report-to-parent">): Promise<unknown> {
  const { deps, target } = by;
  const { parent } = effect;
  // Stored as the parent's before it is sent: the parent may read it when this instance is gone.
  const result =
    effect.result.kind === "completed"
      ? { ...effect.result, output: await deps.payloads.adopt(effect.result.output, parent.instanceId) }
      : effect.result;
  const report = ChildReport.parse({ v: 1, execution: parent.execution, of: parent.of, result });
  return publishEffect(target.outbox, deps.names.verb(parent.instanceId, "child"), report, {
    msgId: `done-${executionOf(by)}`,
  });
}
