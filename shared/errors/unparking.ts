/** Says how to resume a parked instance, by the code of its failure. */
export function unparking(instanceId: string, code: string): string {
  switch (code) {
    case "nondeterminism":
    case "unknown_orchestration":
      return `deploy code that agrees with the history; \`holdfast replay ${instanceId} --app <module>\` tries it`;
    case "blob_missing":
    case "blob_damaged":
      return `restore the missing or damaged blob and deploy again, or end the instance with \`holdfast terminate ${instanceId}\``;
    case "history_unreadable":
    case "history_incomplete":
      return "repair its history: the instance then resumes by itself. Until then nothing can be recorded for it, not even its end";
    case "nats_unavailable":
    case "append_unanswered":
      return "see why NATS does not answer for its streams (`nats stream report`); the instance resumes by itself when NATS answers";
    default:
      return `\`holdfast get ${instanceId}\` says more; the engine tries again by itself and after every deployment`;
  }
}
