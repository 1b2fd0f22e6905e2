/** When two commands are the same command, and how to call one in a message. */
import type { HistoryEvent, NewEvent, TaskTarget } from "../../../schemas/index.ts";

type Command = NewEvent | HistoryEvent;

/** Identity, not content: inputs and durations may change between deployments, what is asked of whom may not. */
export function commandsDiffer(recorded: Command, issued: Command): boolean {
  return describeCommand(recorded) !== describeCommand(issued);
}

function placeOf(target: TaskTarget): string {
  switch (target.kind) {
    case "queue":
      return `on queue "${target.queue}"`;
    case "session":
      return `on session "${target.sessionId}"`;
    case "local":
      return "run locally";
  }
}

export function describeCommand(command: Command): string {
  switch (command.kind) {
    case "activity.scheduled":
      return `${command.target.kind === "session" && command.target.call ? "call" : "activity"} "${command.name}" ${placeOf(command.target)}`;
    case "timer.created":
      return "a timer";
    case "activity.cancelled":
    case "timer.cancelled":
    case "child.cancelled":
      return `${command.kind} of event ${command.of}`;
    case "child.scheduled":
      return `${command.mode} child "${command.name}" as "${command.childId}"`;
    case "end.requested":
      return `${command.verb} of instance "${command.to}"`;
    case "side_effect.recorded":
      return "a side effect";
    case "patch.marked":
      return `patch "${command.patch}"`;
    case "status.set":
      return "a status";
    case "update.completed":
    case "update.failed":
      return `the answer to the update of event ${command.of}`;
    case "pool.joined":
    case "pool.left":
      return `${command.kind} "${command.poolId}"`;
    case "session.opened":
      return `session "${command.sessionId}" of type "${command.type}"`;
    case "session.closed":
      return `close of session "${command.sessionId}"`;
    case "session.lent":
    case "session.returned":
      return `${command.kind} "${command.sessionId}"`;
    case "instance.completed":
      return "completion";
    case "instance.failed":
      return `failure (${command.error.code}: ${command.error.message.slice(0, 300)})`;
    case "instance.cancelled":
      return "cancellation";
    case "instance.continued":
      return "continue-as-new";
    default:
      return command.kind;
  }
}
