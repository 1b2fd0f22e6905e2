/** One readable line on stderr, what to do about it below, never a stack. */
import { isFault } from "../../../shared/errors/index.ts";
import { oneLine } from "./text.ts";

export function errorLine(error: unknown, json: boolean): string {
  const { code, message, hint } = parts(error);
  if (json) return JSON.stringify({ error: { code, message, ...(hint === undefined ? {} : { hint }) } });
  return `holdfast: ${oneLine(message)} (${code})${hint === undefined ? "" : `\n  ${oneLine(hint)}`}`;
}

interface Parts {
  code: string;
  message: string;
  hint: string | undefined;
}

function parts(error: unknown): Parts {
  // The client tells users of the engine's faults in words of its own; here both are at hand.
  const fault = isFault(error)
    ? error
    : error instanceof Error && isFault(error.cause)
      ? error.cause
      : undefined;
  if (fault) return { code: fault.code, message: fault.message, hint: fault.hint ?? hints[fault.code] };
  const message = error instanceof Error ? error.message : String(error);
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "error";
  return { code, message, hint: hints[code] };
}

const hints: Readonly<Record<string, string>> = {
  unknown_orchestration: "Is the name spelt right, and does the application that is served export it?",
  nats_data_dir_in_use:
    "Stop that process, or run beside it with another folder: `holdfast dev --data-dir <folder>`.",
  instance_not_found: "`holdfast list` shows the instances there are.",
  instance_ended: "What has ended cannot be reached any more; start it anew under another id.",
  session_not_found: "`holdfast sessions list` shows the sessions there are.",
  session_unheld: "`holdfast sessions explain <id>` says why nobody holds it.",
  session_lost: "`holdfast sessions explain <id>` says what happened.",
  worker_not_found: "`holdfast workers list` shows who is alive.",
  dead_letter_not_found: "`holdfast dead list` shows the letters there are.",
  not_retryable: "Discard it, or publish it by hand where it belongs.",
  context_not_found: "`holdfast context list` shows the saved ones.",
  result_timeout: "It goes on; `holdfast watch <id>` shows what it waits for.",
  outcome_unknown: "Send it again with the same id: the same message is applied once.",
  no_stream: "Has a service ever run against this server, with this prefix? `holdfast doctor` looks.",
  permission_denied: "This NATS user may not do that; use another one, or widen its permissions.",
};
