/**
 * Guards of the engine that can be taken out, one at a time, for a run of the simulation: `HOLDFAST_WITHOUT=<name>`. The
 * text is replaced while a module is loaded (vitest.config.ts), so the product has no switches. A guard whose text is not
 * found stops the run: this list cannot grow stale in silence.
 */
export interface Mutation {
  /** What is taken out. */
  name: string;
  law: string;
  file: string;
  find: string;
  replace: string;
  /** A test that fails without it. */
  scenario?: string;
}

export const mutations: readonly Mutation[] = [
  {
    name: "fence of the append",
    law: "T1, T4",
    file: "shared/history/append-fenced.ts",
    find: "const options = { headers: carried, expectLastSeq };",
    replace: "const options = { headers: carried }; void expectLastSeq;",
    scenario: "test/conformance/history.test.ts",
  },
  {
    name: "applied set",
    law: "T7",
    file: "services/orchestrator/turn.ts",
    find: "if (delivery && this.instance.state.applied.has(delivery.seq)) {",
    replace: "if (delivery && delivery.seq < 0) {",
  },
  {
    name: "only the last commit calls a message late",
    law: "TURN-4",
    file: "services/orchestrator/turn.ts",
    find: "this.#hasLastCommit ||= await this.#place.hasLastCommit(this.instanceId);",
    replace: "this.#hasLastCommit = true;",
    scenario: "test/simulation/turns/replaced-owner.test.ts",
  },
  {
    name: "owed after a redelivery",
    law: "T3",
    file: "services/orchestrator/turn.ts",
    find: "turn.owed ||= this.instance.isBehindLastCommit(seq);",
    replace: "",
  },
  {
    name: "owed after a fence",
    law: "T3",
    file: "services/orchestrator/live-instance.ts",
    find: "this.#owed = settled !== undefined && settled !== loaded.lastCommitId;",
    replace: "this.#owed = settled === 'never';",
    scenario: "test/simulation/histories/late-append.test.ts",
  },
  {
    name: "anchor",
    law: "LANE-1",
    file: "services/orchestrator/lane/lane-work.ts",
    find: "if (this.#out.size > 0 || this.#claims?.isWaiting(state)) return mine;",
    replace: "",
    scenario: "test/simulation/activities/lane.test.ts",
  },
  {
    name: "what an owner before sent by the lane",
    law: "LANE-1",
    file: "services/orchestrator/turn.ts",
    find: "const laned = this.#laned;",
    replace: "const laned: number[] = [];",
    scenario: "test/simulation/activities/lane.test.ts",
  },
  {
    name: "reports by the lane need an anchor",
    law: "LANE-1, T3",
    file: "services/orchestrator/mailbox.ts",
    find: "if (anchored || !mails.some(({ elsewhere }) => elsewhere)) return mails;",
    replace: "if (mails.length >= 0) return mails;",
    scenario: "test/simulation/activities/lane-anchor.test.ts",
  },
  {
    name: "first completion wins",
    law: "T5",
    file: "shared/replay/decide/accept.ts",
    find: "if (!task || report.attempt !== task.attempt)",
    replace: "if (!task)",
    scenario: "test/unit/replay/activities.test.ts",
  },
  {
    name: "epoch of a result",
    law: "S6",
    file: "shared/replay/decide/accept.ts",
    find: 'if (task.target.kind === "session" && (task.sentEpoch === undefined || report.epoch !== task.sentEpoch))',
    replace: "if (report.epoch === -1)",
    scenario: "test/unit/replay/sessions/session-loss.test.ts",
  },
  {
    name: "message ids of effects",
    law: "T2",
    file: "services/orchestrator/publishing/publish.ts",
    find: "return (await publishUntilStored(until, subject, body, { ...options, msgId }))?.seq;",
    replace:
      "return (await publishUntilStored(until, subject, body, { ...options, msgId: msgId + runtime.random.next() }))?.seq;",
    scenario: "test/simulation/turns/effects-once.test.ts",
  },
  {
    name: "message ids of signals",
    law: "I12",
    file: "shared/replay/decide/accept.ts",
    find: 'if (message.kind === "signal" && message.messageId !== undefined && state.messageIds.has(message.messageId))',
    replace: 'if (message.kind === "signal" && message.messageId === "never")',
    scenario: "test/simulation/messages/repeated-signals.test.ts",
  },
  {
    name: "order of the inbox",
    law: "T7",
    file: "services/orchestrator/partitions/partition.ts",
    find: "if (delivery.order !== next) return again();",
    replace: "if (delivery.order < 0) return again();",
    scenario: "test/simulation/messages/signal-bursts.test.ts",
  },
  {
    name: "everything unacknowledged again at take-over",
    law: "T3",
    file: "services/orchestrator/partitions/partition.ts",
    find: "await bus.deleteConsumer(stream, name);",
    replace: "",
  },
  {
    name: "schedules go last",
    law: "T3",
    file: "services/orchestrator/publishing/effects.ts",
    find: 'case "forget-local":\n      return unschedulings;',
    replace: 'case "forget-local":\n      return beginnings;',
    scenario: "test/simulation/turns/effects-once.test.ts",
  },
  {
    name: "what a dead owner's timer left",
    law: "T3",
    file: "services/orchestrator/turn.ts",
    find: "turn.owed ||= await stillStands(this.#deps, this.#inherited, this.instance);",
    replace: "",
    scenario: "test/simulation/turns/wakes.test.ts",
  },
  {
    name: "a wake that tells of a death",
    law: "T3",
    file: "services/orchestrator/ignored/ignore.ts",
    find: "owed: tellsOfDeath(inherited, instance, wake)",
    replace: "owed: false",
    scenario: "test/simulation/turns/wakes.test.ts",
  },
  {
    name: "next execution by whoever finds it",
    law: "T3",
    file: "services/orchestrator/turn.ts",
    find: 'if (!this.instance.state.next) return "done";',
    replace: 'if (this.#lastAt >= 0) return "done";',
    scenario: "test/simulation/turns/wakes.test.ts",
  },
  {
    name: "time of a history",
    law: "F30",
    file: "services/orchestrator/turn.ts",
    find: "const now = Math.max(clock.now(), this.#lastAt);",
    replace: "const now = clock.now();",
    scenario: "test/simulation/turns/clocks.test.ts",
  },
  {
    name: "the leader is asked",
    law: "HISTORY-4",
    file: "shared/history/store.ts",
    find: "return this.#bus.clustered();\n  }\n\n  /** At least",
    replace: "return false;\n  }\n\n  /** At least",
    scenario: "test/simulation/histories/replicas.test.ts",
  },
  {
    name: "claim creates its key",
    law: "S2, LEASE-3",
    file: "shared/leases/claim.ts",
    find: "const outcome = await store.write({ key, claimId, body, ttlMs, expected, timeoutMs });",
    replace:
      "const there = await store.look(key); const outcome = await store.write({ key, claimId, body, ttlMs, expected: there.kind === 'none' ? expected : there.revision, timeoutMs });",
    scenario: "test/unit/leases/lease-keeper.test.ts",
  },
  {
    name: "attachment is claimed once",
    law: "LEASE-4",
    file: "shared/leases/claim.ts",
    find: "return once ? undefined : look.revision;",
    replace: "void once; return look.revision;",
    scenario: "test/unit/leases/lease-keeper.test.ts",
  },
  {
    name: "holder fences itself",
    law: "S7",
    file: "shared/leases/lease-keeper.ts",
    find: "return this.#holdings.get(lease)?.good ?? false;",
    replace: "return this.#holdings.has(lease);",
    scenario: "test/unit/leases/lease-keeper.test.ts",
  },
  {
    name: "holder's check before it reports",
    law: "S7",
    file: "services/worker/sessions/holding/held-session.ts",
    find: "!this.#fence.signal.aborted && this.#services.deps.leases.isHeld(this.lease);",
    replace: "true;",
    scenario: "test/simulation/sessions/paused-holder.test.ts",
  },
  {
    name: "watcher's grace",
    law: "S5",
    file: "services/watcher/grace.ts",
    find: "return Math.max(0, endedAt + ttlMs - this.#runtime.clock.monotonic());",
    replace: "return Math.min(0, endedAt);",
    scenario: "test/unit/services/watcher-grace.test.ts",
  },
  {
    name: "read model behind the history",
    law: "E2",
    file: "services/orchestrator/publishing/summaries.ts",
    find: 'if (newer) return "newer";',
    replace: "",
    scenario: "test/simulation/turns/stale-summary.test.ts",
  },
  {
    name: "updates are known by their id",
    law: "Q2",
    file: "shared/replay/ask-instance.ts",
    find: 'if (record) return { kind: "known", record };',
    replace: "",
    scenario: "test/simulation/messages/updates.test.ts",
  },
  {
    name: "claims that no queue has",
    law: "S5",
    file: "shared/sessions/reconcile.ts",
    find: 'if (lease.kind === "none" && isAsked) return { kind: "fine" };',
    replace: 'if (lease.kind === "none" && (isAsked || record.phase === "opening")) return { kind: "fine" };',
    scenario: "test/simulation/histories/recreated-streams.test.ts",
  },
  {
    name: "a write counts from its beginning",
    law: "LEASE-1",
    file: "shared/leases/holding.ts",
    find: "this.#acknowledged(outcome.seq, beganAt);",
    replace: "this.#acknowledged(outcome.seq, Math.max(beganAt, this.#clock.monotonic()));",
    scenario: "test/unit/leases/lease-keeper.test.ts",
  },
  {
    name: "margin before the end of a lease",
    law: "S7",
    file: "shared/leases/lease.ts",
    find: "marginMs: Math.min(1000, ttlMs / 10) + skewMs,",
    replace: "marginMs: 0 * skewMs,",
    scenario: "test/unit/leases/lease-keeper.test.ts",
  },
  {
    name: "a seat is taken by CAS",
    law: "QUOTA-1",
    file: "services/worker/sessions/quotas/seat-store.ts",
    find: "const outcome = await this.#bucket.update(key, encode(value), expected, { timeoutMs });",
    replace:
      "const newest = await this.#bucket.get(key, { leader: true }); const outcome = await this.#bucket.update(key, encode(value), newest?.revision ?? expected, { timeoutMs });",
    scenario: "test/simulation/sessions/quotas.test.ts",
  },
  {
    name: "a seat waits for its lease",
    law: "QUOTA-3",
    file: "services/worker/sessions/quotas/seat-care.ts",
    find: "return this.#untilOld(at, seat.leaseTtlMs);",
    replace: "return Math.min(0, await this.#untilOld(at, seat.leaseTtlMs));",
    scenario: "test/simulation/sessions/quotas.test.ts",
  },
  {
    name: "own copies of large values",
    law: "I14",
    file: "services/orchestrator/turn/adopt-payloads.ts",
    find: "if (!batch.some(({ message }) => carriesBlob(message))) return batch;",
    replace: "if (batch.length >= 0) return batch;",
    scenario: "test/simulation/histories/owned-values.test.ts",
  },
  {
    name: "nothing is committed after the partition was given up",
    law: "T3",
    file: "services/orchestrator/turn.ts",
    find: 'if (signal.aborted) return "fenced";',
    replace: "",
    scenario: "test/simulation/turns/given-up-partition.test.ts",
  },
  {
    name: "a wake before its time is scheduled again",
    law: "CLOCK-1",
    file: "services/orchestrator/turn.ts",
    find: "if (delivery) await this.#scheduleAgainIfEarly(message, delivery, turn);",
    replace: "",
    scenario: "test/simulation/turns/clocks.test.ts",
  },
  {
    name: "an own stream looks for a shared history",
    law: "HISTORY-2",
    file: "shared/history/store.ts",
    find: "if (await this.#bus.last(shared.stream, shared.subject, { leader: this.#leader })) {",
    replace: "if (this.#leader && !this.#leader) {",
    scenario: "test/conformance/history.test.ts",
  },
  {
    name: "an empty own stream is sealed",
    law: "HISTORY-3",
    file: "shared/history/locate.ts",
    find: "if (!ownLast && isFirstCommit(sharedLast)) {",
    replace: "if (!ownLast && !isFirstCommit(sharedLast)) {",
    scenario: "test/conformance/history.test.ts",
  },
  {
    name: "copies count when the shared stream is sealed",
    law: "HISTORY-5",
    file: "shared/history/locate.ts",
    find: 'if (ownLast && sealOf(ownLast) !== "moved" && !isCopy(ownLast)) return { ...own, last: ownLast };',
    replace: 'if (ownLast && sealOf(ownLast) !== "moved") return { ...own, last: ownLast };',
    scenario: "test/conformance/history.test.ts",
  },
  {
    name: "a call that was seen is not run again",
    law: "CALL-1",
    file: "services/worker/sessions/calls/calls.ts",
    find: 'if (!this.#seen.add(keyOf(call.task))) return "seen";',
    replace: "this.#seen.add(keyOf(call.task));",
    scenario: "test/integration/sessions/attachment.test.ts",
  },
  {
    name: "messages set aside keep their sequence",
    law: "ASIDE-1",
    file: "services/orchestrator/quarantine/aside-mail.ts",
    find: "return [{ message: admitted(opened.message), delivery, aside: true }];",
    replace:
      "return [{ message: admitted(opened.message), delivery: { ...delivery, seq: stored.seq + 1e9 }, aside: true }];",
    scenario: "test/simulation/turns/set-aside.test.ts",
  },
  {
    name: "a claim that comes again leaves the seat alone",
    law: "QUOTA-1",
    file: "services/worker/sessions/claiming/claim-taker.ts",
    find: 'if (this.#quotas.isSeatedHere(claim) && (await this.isSpent(claim))) return notTaken("raced");',
    replace: "",
    scenario: "test/simulation/sessions/claim-again.test.ts",
  },
];

/** For vite: replaces the text of one guard where a run asks for it. */
export function withoutGuard(name: string | undefined, others: readonly Mutation[] = []) {
  const all = [...mutations, ...others];
  const mutation = name === undefined ? undefined : all.find((one) => one.name === name);
  if (name !== undefined && !mutation) throw new Error(`no guard is named ${name}`);
  return {
    name: "without-guard",
    enforce: "pre" as const,
    transform(code: string, id: string): string | undefined {
      if (!mutation || !id.endsWith(`/${mutation.file}`)) return undefined;
      if (!code.includes(mutation.find)) throw new Error(`${mutation.file} has no text "${mutation.find}"`);
      return code.replace(mutation.find, mutation.replace);
    },
  };
}
