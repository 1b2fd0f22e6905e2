/** How to get a parked instance going again; depends on why it stopped. */
export function unparking(instanceId: string, code: string): string {
  switch (code) {
    case "nondeterminism":
    case "unknown_orchestration":
      return `deploy code that agrees with the history; \`holdfast replay ${instanceId} --app <module>\` tries it`;
    case "blob_missing":
    case "blob_damaged":
      return `put back what is missing or damaged and deploy again, or \`holdfast terminate ${instanceId}\` ends it`;
    case "history_unreadable":
    case "history_incomplete":
      return "put its history right: it goes on by itself. Until then nothing can be recorded for it, its end neither";
    case "nats_unavailable":
    case "append_unanswered":
      return "see why NATS does not answer for its streams (`nats stream report`); it goes on by itself when it does";
    default:
      return `\`holdfast get ${instanceId}\` says more; it is tried again by itself, and with every deployment`;
  }
}
