import type { CodeGroup } from "./code-group.ts";

export const logs: CodeGroup = {
  title: "In the logs",
  about: "a service goes on, and says what went wrong under `code`",
  codes: {
    bad_notice: {
      cause: "A cancel notice could not be read.",
      remedy: "Correct the sender. The work goes on.",
    },
    beacon_failed: {
      cause: "The service could not write that it is alive.",
      remedy: "See why NATS does not answer.",
    },
    beat_failed: {
      cause: "The gateway could not send its pulse to the pages.",
      remedy: "See why NATS does not answer.",
    },
    bug: {
      cause: "The engine failed around a task; the task is delivered again.",
      remedy: "Report it with the log.",
    },
    burial_failed: {
      cause: "A dead letter could not be stored; its message is delivered again.",
      remedy: "See why NATS does not answer.",
    },
    handler_threw: { cause: "A listener threw.", remedy: "Report it with the log." },
    heartbeat_lost: {
      cause: "Heartbeat details could not be stored.",
      remedy: "See why NATS does not answer.",
    },
    junk: {
      cause: "A message of no known kind was moved to the dead letters.",
      remedy: "`holdfast dead list` shows it; correct its publisher.",
    },
    lease_thread_died: {
      cause: "The thread that renews leases ended and is started again.",
      remedy: "Report it with the log; leases run out meanwhile.",
    },
    loss_unanswered: {
      cause: "NATS did not answer the report of a lost session.",
      remedy: "It is reported again by itself.",
    },
    not_asked: {
      cause: "The watcher could not ask an instance to check its register.",
      remedy: "It is asked in the next round.",
    },
    not_shown: {
      cause: "An instance could not be shown as parked.",
      remedy: "It is shown with its next failure.",
    },
    partitions_failed: {
      cause: "A round of taking partitions failed.",
      remedy: "It is tried again by itself.",
    },
    rate_unknown: {
      cause: "The shared rate of an activity could not be read.",
      remedy: "The worker's own share holds until it can be.",
    },
    registration_failed: {
      cause: "The worker could not write its entry.",
      remedy: "See why NATS does not answer.",
    },
    renewal_failed: {
      cause: "A lease could not be renewed.",
      remedy: "It is tried again until it runs out.",
    },
    request_failed: {
      cause: "A request to the gateway failed unexpectedly.",
      remedy: "Report it with the log.",
    },
    return_uncounted: { cause: "A task was given back without being counted.", remedy: "Nothing." },
    server_clock: {
      cause: "The service could not read the server's clock.",
      remedy: "The service reads it again when NATS is back.",
    },
    silence_unanswered: {
      cause: "NATS did not answer the report of a silent attempt.",
      remedy: "It is reported again by itself.",
    },
    stall_untold: {
      cause: "The end of a stalled lease could not be reported.",
      remedy: "The lease runs out by itself.",
    },
    start_not_asked: {
      cause:
        "A start under limits could not be sent to the keeper of its key; it stays in the inbox and is sent again.",
      remedy: "See why NATS or its object store does not answer.",
    },
    stream_count: {
      cause: "The service could not read the number of streams.",
      remedy: "See why NATS does not answer.",
    },
    stream_write: {
      cause: "Chunks of a stream could not be written.",
      remedy: "The attempt fails and is repeated by its policy.",
    },
    summary_failed: {
      cause: "The entry of an instance could not be written.",
      remedy: "It is written with its next change.",
    },
    sweep_failed: {
      cause: "A step of the retention sweep failed.",
      remedy: "It is tried again in the next sweep.",
    },
    uncaught_exception: {
      cause: "Code threw where no handler catches it. The process ends.",
      remedy: "Look at the stack in the log; if it is your code, catch the error.",
    },
    unhandled_rejection: {
      cause: "A promise was rejected and no code awaited it. The process goes on.",
      remedy: "Look at the stack in the log; await it or catch it.",
    },
    unknown: { cause: "A poisoned task could not be set aside.", remedy: "It is tried again by itself." },
  },
};
