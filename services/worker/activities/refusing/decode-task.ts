import { ActivityTask } from "../../../../schemas/index.ts";
import { type Delivery, decode } from "../../../../shared/bus/index.ts";

export type DecodedTask =
  | { kind: "task"; task: ActivityTask }
  | { kind: "invalid"; code: string; message: string };

/** Parses a task once, on arrival; a message that does not fit gets a reason. */
export function decodeTask(message: Pick<Delivery, "body">, activity: { name: string }): DecodedTask {
  const decoded = decode(ActivityTask, message.body);
  if (decoded.kind === "invalid") return { kind: "invalid", code: "invalid_task", message: decoded.message };
  const task = decoded.value;
  if (task.name !== activity.name) {
    const why = `a task of "${task.name}" on the subject of "${activity.name}"`;
    return { kind: "invalid", code: "wrong_subject", message: why };
  }
  return { kind: "task", task };
}
