import type { CodeGroup } from "./code-group.ts";

export const asking: CodeGroup = {
  title: "Starting, asking and steering",
  about: "codes that the client, the command line, HTTP and plain NATS answer with",
  codes: {
    instance_not_found: {
      cause: "No instance has this id, or the retention time has removed it.",
      remedy: "`holdfast list` shows the instances there are.",
    },
    instance_ended: {
      cause: "The instance has completed, failed or was cancelled: it takes no signal, update or cancel.",
      remedy: "Start a new instance under another id.",
    },
    instance_pending: {
      cause: "The start is stored, but no orchestrator has read it yet.",
      remedy: "Wait a moment; `holdfast doctor` says whether an orchestrator runs.",
    },
    instance_parked: {
      cause: "The turns of the instance fail, so it cannot answer.",
      remedy: "`holdfast get <id>` says why it is parked and how to resume it.",
    },
    instance_running: {
      cause: "The call needs an instance that has ended.",
      remedy: "Wait for its end with `holdfast result <id>`, or cancel it.",
    },
    instance_exists: {
      cause: "A child was started under an id that another instance has.",
      remedy: "Give the child another id, or leave the id out.",
    },
    unknown_orchestration: {
      cause: "The application that is served has no orchestration of this name.",
      remedy: "Is the name spelt right, and does the application that is served export it?",
    },
    unknown_query: {
      cause: "The instance's code answers no query of this name.",
      remedy: "The message lists the names it has; register it with ctx.onQuery before the first await.",
    },
    unknown_update: {
      cause: "The instance's code takes no update of this name.",
      remedy: "The message lists the names it has; register it with ctx.onUpdate before the first await.",
    },
    update_refused: {
      cause: "The validator of the update, or a limit, refused it; nothing was changed.",
      remedy: "The message is the validator's; send another input.",
    },
    update_timeout: {
      cause: "The update was not accepted or completed in time. It may still be applied.",
      remedy: "Send it again with the same update id: it is applied once.",
    },
    update_interrupted: {
      cause: "The instance continued as new before the handler of the update ended.",
      remedy: "Look at the state with a query; end handlers before continuing as new.",
    },
    query_timeout: {
      cause: "No orchestrator answered the query in time.",
      remedy: "`holdfast doctor` says whether an orchestrator holds the instance's partition.",
    },
    query_failed: {
      cause: "The code that answers the query threw, or returned something other than JSON.",
      remedy: "Correct the handler; the message has its error.",
    },
    result_timeout: {
      cause: "The instance did not end within the time you chose to wait.",
      remedy: "It goes on; `holdfast watch <id>` shows what it waits for.",
    },
    start_rejected: {
      cause:
        "As many instances of the flow key were running as `concurrency` allows, and `onBusy` is `reject`.",
      remedy: 'Start again later, or let starts wait with `onBusy: "queue"` (flow-control.md).',
    },
    start_replaced: {
      cause: "A newer start under the same flow key took the place of this one.",
      remedy: "Nothing: this is what the rule asks for.",
    },
    start_debounced: {
      cause: "A later start under the same key came within the debounce time.",
      remedy: "Nothing: this is what the rule asks for.",
    },
    start_throttled: {
      cause: "Another start under the same key came within the throttle period.",
      remedy: "Nothing: this is what the rule asks for.",
    },
    schedule_not_found: {
      cause: "There is no schedule of this id.",
      remedy: "`holdfast schedule list` shows all schedules.",
    },
    schedule_exists: {
      cause: "A schedule of this id exists.",
      remedy: "Update it, or create it with `replace`.",
    },
    schedule_ended: {
      cause: "The schedule is over: its end date has passed, or it was deleted.",
      remedy: "Create it anew.",
    },
    invalid_schedule: {
      cause: "The schedule cannot be read: cron, interval, time zone or dates.",
      remedy: "The message names the field; see schedules.md.",
    },
    session_not_found: {
      cause: "No session has this id.",
      remedy: "`holdfast sessions list` shows the sessions there are.",
    },
    blob_not_found: {
      cause: "The session has nothing stored under this name.",
      remedy: "`holdfast sessions blobs <id>` shows what it has.",
    },
    pool_not_found: {
      cause: "No pool of this id has a keeper.",
      remedy: "`holdfast pools list` shows all pools.",
    },
    session_unheld: {
      cause: "No worker holds the session now.",
      remedy: "`holdfast sessions explain <id>` says why no worker holds it.",
    },
    worker_not_found: {
      cause: "No live worker has this id, or the worker does not answer.",
      remedy: "`holdfast workers list` shows the live workers.",
    },
    dead_letter_not_found: {
      cause: "There is no dead letter of this number.",
      remedy: "`holdfast dead list` shows the letters there are.",
    },
    not_retryable: {
      cause: "A dead letter cannot be sent again to this letter's subject.",
      remedy: "Discard it, or publish it by hand where it belongs.",
    },
    invalid_id: {
      cause: "An id has characters or a length that a subject cannot carry.",
      remedy: "Use 1 to 128 characters of A-Z a-z 0-9 _ -.",
    },
    invalid_input: {
      cause: "The input does not fit the schema, or a request has a field the route does not know.",
      remedy: "The message names the field and the rule.",
    },
    invalid_json: { cause: "The payload is not JSON.", remedy: "Send JSON; an empty payload is no input." },
    invalid_header: {
      cause: "A header `Holdfast-…` has a value that cannot be read.",
      remedy: "The message names the header; plain-nats.md has what each may be.",
    },
    invalid_answer: {
      cause: "A service answered something this client cannot read.",
      remedy: "Use a client of the same or a newer version.",
    },
    invalid_request: {
      cause: "A request to a service of the engine cannot be read.",
      remedy: "The message names the field; compare with schemas/json.",
    },
    invalid_duration: {
      cause: "A duration has another form than `250ms`, `5s`, `2m`, `1h`, `1d` or a number of milliseconds.",
      remedy: "Write it in one of these forms.",
    },
    unknown_subject: {
      cause: "A message came on an unknown subject under `orchestrations.<id>`.",
      remedy: "The message lists the verbs; plain-nats.md shows each.",
    },
    malformed_message: {
      cause: "A message in the inbox cannot be read; it is now a dead letter.",
      remedy: "`holdfast dead show <n>` shows the message and the reason; correct its sender.",
    },
    server_answer: {
      cause: "A NATS user had the server send one of its answers to the inbox; it is now a dead letter.",
      remedy:
        "`holdfast dead show <n>` names the instance. The answer was not applied. docs/security.md says which users can do this.",
    },
    not_capable: {
      cause:
        "A report has no capability, or not the one an orchestrator made for it; it is now a dead letter.",
      remedy:
        "`holdfast dead show <n>` names the instance. If the report is forged, find its sender. After an upgrade or a change of keys: see docs/security.md, then `holdfast dead retry <n>`.",
    },
    outcome_unknown: {
      cause: "NATS did not confirm the message: it may or may not be stored.",
      remedy: "Send it again with the same id: the same message is applied once.",
    },
    confirmation_needed: {
      cause: "The command changes something, and there is no terminal to ask for confirmation.",
      remedy: "Add --yes.",
    },
    usage: {
      cause: "The program does not understand the command line.",
      remedy: "The message says what is wrong; `holdfast <command> --help` shows the arguments.",
    },
    invalid_option: {
      cause: "An option is unknown, misspelt, contradicts another, or is out of its range.",
      remedy: "The message names the option and the nearest right one.",
    },
    input_unreadable: { cause: "The file named after `@` cannot be read.", remedy: "Check the path." },
    interrupted: { cause: "The program received a signal to stop.", remedy: "Nothing." },
    folder_not_empty: {
      cause: "`init` writes only into a folder that is new or empty.",
      remedy: "Name a folder that does not exist yet.",
    },
    data_dir_unusable: {
      cause: "The data folder cannot be made or written to.",
      remedy: "Choose another folder with --data-dir.",
    },
    service_failed: {
      cause: "A service that `dev` started ended before it was ready.",
      remedy: "The message has its last words; the whole log is in the file it names.",
    },
    bench_missing: {
      cause: "The benchmark is not part of the installed package.",
      remedy: "Clone the repository and run `npm run bench`.",
    },
    context_not_found: {
      cause: "No saved context has this name.",
      remedy: "`holdfast context list` shows the saved ones.",
    },
    contexts_unreadable: { cause: "The file of contexts is damaged.", remedy: "Repair or remove it." },
    nats_url_missing: {
      cause: "No address of a NATS server was given and none was found.",
      remedy: "Pass `{ url }`, set NATS_URL, choose a context, or run `holdfast dev` in this folder.",
    },
  },
};
