/** The status of an update, for the client that waits for it (Q2). */
import { type Commit, type EventOf, Name, type UpdateAnswer } from "../../../schemas/index.ts";
import type { Considered, UpdateRecord } from "../../../shared/replay/index.ts";
import type { OrchestratorDeps } from "../deps.ts";

export function updateAnswer(updateId: string, record: UpdateRecord): UpdateAnswer {
  const about = { v: 1 as const, updateId: Name.parse(updateId) };
  switch (record.kind) {
    case "pending":
      return { ...about, status: "accepted" };
    case "completed":
      return { ...about, status: "completed", answer: record.answer };
    case "failed":
      return { ...about, status: "failed", error: record.error };
    case "earlier":
      // The answer is gone with the history of its execution: it is only known that the update was applied.
      return { ...about, status: "completed" };
  }
}

export const refusedAnswer = (
  updateId: string,
  { code, message, details }: Extract<Considered, { kind: "refused" }>,
): UpdateAnswer => ({
  v: 1,
  updateId: Name.parse(updateId),
  status: "refused",
  error: {
    code,
    message,
    retryable: code === "instance_parked",
    ...(details === undefined ? {} : { details }),
  },
});

/**
 * Answers an update that was sent again as it was answered the first time. An update of an earlier execution
 * is looked up in the whole history.
 */
export async function knownAnswer(
  { history }: Pick<OrchestratorDeps, "history">,
  instanceId: string,
  updateId: string,
  record: UpdateRecord,
): Promise<UpdateAnswer> {
  if (record.kind !== "earlier") return updateAnswer(updateId, record);
  return updateAnswer(updateId, find((await history.readAll(instanceId)) ?? [], updateId) ?? record);
}

function find(commits: readonly Commit[], updateId: string): UpdateRecord | undefined {
  let accepted: { execution: number; of: number } | undefined;
  let found: UpdateRecord | undefined;
  for (const { execution, events } of commits) {
    for (const event of events) {
      if (event.kind === "update.accepted" && event.updateId === updateId) {
        accepted = { execution, of: event.id };
        found = { kind: "failed", of: event.id, error: interrupted };
      } else if (isAnswer(event) && accepted?.execution === execution && accepted.of === event.of) {
        const { of } = event;
        found =
          event.kind === "update.completed"
            ? { kind: "completed", of, answer: event.answer }
            : { kind: "failed", of, error: event.error };
      }
    }
  }
  return found;
}

const isAnswer = (
  event: Commit["events"][number],
): event is EventOf<"update.completed"> | EventOf<"update.failed"> =>
  event.kind === "update.completed" || event.kind === "update.failed";

const interrupted = {
  code: "update_interrupted",
  message: "the instance continued as new before the handler of the update ended: it ran in part",
  retryable: false,
};
