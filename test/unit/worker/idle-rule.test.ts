import { expect, test } from "vitest";
import { z } from "zod";
import { SessionClaim } from "../../../schemas/index.ts";
import { workerConfig } from "../../../services/worker/config.ts";
import { idleRuleOf } from "../../../services/worker/sessions/session-options.ts";
import { workerSettings } from "../../../services/worker/settings.ts";
import { defineSession, type SessionTypeOptions } from "../../../shared/definitions/index.ts";

const config = workerConfig(z.object(workerSettings).parse({ WORKER_IDLE_TIMEOUT: "5m" }));
const claim = (idleTimeoutMs?: number) =>
  SessionClaim.parse({
    ...{ v: 1, instanceId: "i", sessionId: "s", attachment: 1, type: "t", affinityKey: "k", metadata: {} },
    ...{ requires: {}, openedAt: 0, deadlineAt: 1 },
    ...(idleTimeoutMs !== undefined && { idleTimeoutMs }),
  });
const type = (options: SessionTypeOptions = {}) =>
  defineSession("t", { ...options, init: () => 0, calls: {} });
const saving = defineSession("t", {
  ...{ init: () => 0, calls: {}, checkpoint: () => new Uint8Array(), restore: () => 0 },
});

test("defect 35: a session parks by default only where parking loses nothing", () => {
  expect(idleRuleOf(claim(), type(), config)).toEqual({ ms: 0, lossless: true });
  expect(idleRuleOf(claim(), undefined, config), "bare").toEqual({ ms: 0, lossless: true });
  expect(idleRuleOf(claim(), saving, config)).toEqual({ ms: 300_000, lossless: true });
});

test("defect 35: who asks for it gets it, checkpoint or not", () => {
  expect(idleRuleOf(claim(), type({ idleTimeout: "7s" }), config)).toEqual({ ms: 7000, lossless: false });
  expect(idleRuleOf(claim(100), type({ idleTimeout: "7s" }), config)).toEqual({ ms: 100, lossless: false });
  expect(idleRuleOf(claim(0), saving, config)).toEqual({ ms: 0, lossless: false });
});
