import { expect, it } from "vitest";
import { HistoryEvent } from "../../../schemas/index.ts";
import { failedStep } from "../../../services/gateway/dashboard/src/history/failed-step.ts";
import { userFrames } from "../../../services/gateway/dashboard/src/history/user-frames.ts";
import { foldTimeline } from "../../../shared/timeline/index.ts";

const retry = { maxAttempts: 3, initialDelayMs: 100, maxDelayMs: 1000, factor: 2, nonRetryable: [] };
const scheduled = (name: string, input: unknown) => ({
  kind: "activity.scheduled",
  name,
  input: { json: input },
  target: { kind: "queue", queue: "default" },
  retry,
  timeouts: {},
});
const declined = { code: "declined", message: "card declined", retryable: true };
const dated = (events: Record<string, unknown>[]) =>
  events.map((event, index) => ({ at: index, event: HistoryEvent.parse({ id: index + 1, ...event }) }));

const model = foldTimeline(
  dated([
    { kind: "instance.started", name: "checkout", input: { json: null } },
    scheduled("reserve", 1),
    scheduled("charge", { card: 7 }),
    { kind: "activity.failed", of: 2, error: { code: "gone", message: "out of stock", retryable: false } },
    { kind: "activity.attempt_failed", of: 3, attempt: 1, error: declined, retryAt: 9 },
    { kind: "activity.failed", of: 3, error: declined },
    scheduled("refund", 2),
    { kind: "instance.failed", error: declined },
  ]),
);

it("names the step an orchestration failed at, with its input and attempts", () => {
  expect(failedStep(model, declined)).toMatchObject({
    name: "charge",
    input: { json: { card: 7 } },
    attempts: [{ error: declined }],
  });
});

it("finds it also where the code wrapped the error, and says nothing where no step is to blame", () => {
  const wrapped = { code: "error", message: "checkout failed", retryable: false, cause: declined };
  expect(failedStep(model, wrapped)).toMatchObject({ name: "charge" });
  expect(failedStep(model, { code: "error", message: "of my own", retryable: false })).toBeUndefined();
});

it("shows the user's frames of a stack, not the engine's", () => {
  const stack = [
    "Error: card declined",
    "    at charge (/home/ada/shop/src/services/payment.ts:12:9)",
    "    at runTask (/home/ada/shop/node_modules/holdfast/dist/services/worker/activities/run-task.js:80:3)",
    "    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)",
  ].join("\n");
  expect(userFrames(stack)).toBe(
    "Error: card declined\n    at charge (/home/ada/shop/src/services/payment.ts:12:9)",
  );
});
