/** Schedules a task: one activity, or one call on a session, with its retries and timeouts. */
import { EventId, Name, type NewEvent, type TaskTarget } from "../../../schemas/index.ts";
import {
  type ActivityOptions,
  activityOptionNames,
  retryOptionNames,
  type Schema,
  validate,
} from "../../definitions/index.ts";
import type { Context } from "./context.ts";
import { retryPolicy, timeouts } from "./recorded-options.ts";
import { refuseUnknown, requireId } from "./require.ts";
import { snapshot } from "./snapshot.ts";

/** The activity, or the call of a session type, that a task runs. */
export interface TaskDefinition {
  readonly name: string;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
}

export function scheduleTask(
  context: Context,
  activity: TaskDefinition | string,
  input: unknown,
  options: ActivityOptions,
  target: TaskTarget,
  maxAttempts: number,
): Promise<unknown> {
  const { runner } = context;
  const name = typeof activity === "string" ? activity : activity.name;
  const definition = typeof activity === "string" ? undefined : activity;
  return context.operation((operation) => {
    refuseUnknown(runner, `options of "${name}"`, options, activityOptionNames);
    refuseUnknown(runner, `retry of "${name}"`, options.retry, retryOptionNames);
    validate(definition?.input, input, "invalid_input", `input of "${name}"`);
    const { payload, bytes } = snapshot(input, `input of "${name}"`);
    const event: NewEvent = {
      kind: "activity.scheduled",
      name: requireId(Name, "activity name", name),
      input: payload,
      target,
      retry: retryPolicy(options.retry, maxAttempts),
      timeouts: timeouts(options),
    };
    const id = runner.issue(event, bytes);
    return {
      id,
      operation: {
        scope: operation.scope,
        resolve: (value) => {
          try {
            operation.resolve(validate(definition?.output, value, "invalid_output", `output of "${name}"`));
          } catch (error) {
            operation.reject(error);
          }
        },
        reject: operation.reject,
        cancelCommand: () => ({ kind: "activity.cancelled", of: EventId.parse(id) }),
        sessionId: target.kind === "session" ? target.sessionId : undefined,
      },
    };
  });
}
