/** Messages an instance has no use for are answered, so that no sender waits or keeps a session in vain. */
import { expect, it } from "vitest";
import { SessionReport } from "../../../schemas/index.ts";
import type { OrchestratorDeps } from "../../../services/orchestrator/deps.ts";
import { answerIgnored } from "../../../services/orchestrator/ignored/answer-ignored.ts";
import type { Outbox } from "../../../services/orchestrator/publishing/publish.ts";
import { subjects } from "../../../shared/bus/index.ts";
import { noCapabilities } from "../../../shared/capabilities/index.ts";
import { initialState } from "../../../shared/replay/index.ts";
import { held } from "../../support/worlds/instance-messages.ts";

async function answered(report: unknown, why = "unknown", owner?: string): Promise<unknown[]> {
  const sent: unknown[] = [];
  const bus = {
    publish: async (subject: string, body: Uint8Array) => {
      sent.push([subject, JSON.parse(new TextDecoder().decode(body))]);
      return { kind: "stored", seq: 1, duplicate: false };
    },
  };
  const { signal } = new AbortController();
  const outbox = { bus, signal, capabilities: noCapabilities } as unknown as Outbox;
  const deps = { names: subjects() } as unknown as OrchestratorDeps;
  const message = SessionReport.parse({ v: 1, sessionId: "m1", attachment: 1, owner, report });
  await answerIgnored(deps, outbox, initialState("i1"), { kind: "session", report: message }, why);
  return sent;
}

const activated = { kind: "activated", on: held(1), initMs: 1, warm: false, restored: false };

it("a holder nobody wants is told to close", async () => {
  expect(await answered(activated)).toEqual([
    ["sessions.w1.m1", { v: 1, kind: "close", epoch: 10, reason: "no longer wanted" }],
  ]);
});

it("what an owner tells of a session that is still his is no reason to close it", async () => {
  expect(await answered(activated, "unknown", "pool-p")).toEqual([]);
});

const lent = {
  kind: "lent",
  session: {
    ...{ sessionId: "m1", owner: "pool-p", type: "model", openedAt: 0, attachments: 1, initFailures: 0 },
    options: {
      ...{ creationTimeoutMs: 1, onLost: "reclaim", maxAutoRetries: 1, maxInitAttempts: 1 },
      ...{ requires: {}, lazy: false, metadata: {} },
    },
    phase: { kind: "active", on: held(1) },
    lending: { poolId: "p", number: 4, to: { instanceId: "i1", execution: 2, of: 9 } },
  },
};

it.each(["late", "ended", "unknown"])("a member lent to a use that is over (%s) goes back", async (why) => {
  expect(await answered(lent, why, "pool-p")).toEqual([
    ["orchestrations.pool-p.signal.pool", { kind: "leave", user: "i1-2-9" }],
  ]);
});

it("a member it has already is kept", async () => {
  expect(await answered(lent, "repeated", "pool-p")).toEqual([]);
});
