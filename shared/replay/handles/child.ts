/** Child orchestrations: the parent waits for the end of `ctx.child`, and not for that of `ctx.spawn`. */
import { InstanceId, Name } from "../../../schemas/index.ts";
import {
  type AnyOrchestration,
  type ChildOptions,
  childOptionNames,
  validate,
} from "../../definitions/index.ts";
import { CancelledError } from "../../errors/index.ts";
import type { Context } from "./context.ts";
import { deriveId } from "./derive-id.ts";
import { refuseUnknown, requireId } from "./require.ts";
import { snapshot } from "./snapshot.ts";

export function runChild(
  context: Context,
  orchestration: AnyOrchestration | string,
  input: unknown,
  options: ChildOptions,
): Promise<unknown> {
  const definition = typeof orchestration === "string" ? undefined : orchestration;
  return context.operation((operation) => {
    const id = scheduleChild(context, orchestration, input, "attached", options);
    return {
      id,
      operation: {
        ...operation,
        resolve: (value) => {
          try {
            operation.resolve(
              validate(definition?.output, value, "invalid_output", `output of "${definition?.name}"`),
            );
          } catch (error) {
            operation.reject(error);
          }
        },
        cancelCommand: () => ({ kind: "child.cancelled", of: id }),
      },
    };
  });
}

/** Returns the id of the child. */
export function spawnChild(
  context: Context,
  orchestration: AnyOrchestration | string,
  input: unknown,
  options: { id?: string },
): string {
  const scope = context.scopeOf;
  if (scope.cancelled) throw new CancelledError(scope.reason);
  const childId = options.id ?? nextChildId(context);
  scheduleChild(context, orchestration, input, "detached", { id: childId });
  return childId;
}

function nextChildId({ runner }: Context): string {
  // Counted on the root context: derived contexts share the instance's numbering.
  runner.childCount++;
  const { instanceId, execution } = runner.state;
  return deriveId(instanceId, execution, `c${runner.childCount}`);
}

function scheduleChild(
  context: Context,
  orchestration: AnyOrchestration | string,
  input: unknown,
  mode: "attached" | "detached",
  options: ChildOptions,
): number {
  const name = typeof orchestration === "string" ? orchestration : orchestration.name;
  refuseUnknown(context.runner, `options of child "${name}"`, options, childOptionNames);
  if (typeof orchestration !== "string")
    validate(orchestration.input, input, "invalid_input", `input of "${name}"`);
  const { payload, bytes } = snapshot(input, `input of "${name}"`);
  const childId = requireId(InstanceId, "instance id", options.id ?? nextChildId(context));
  const grants = (options.grant ?? []).map((session) => session.id as never);
  return context.runner.issue(
    {
      kind: "child.scheduled",
      name: requireId(Name, "orchestration name", name),
      childId,
      input: payload,
      mode,
      grants,
    },
    bytes,
  );
}
