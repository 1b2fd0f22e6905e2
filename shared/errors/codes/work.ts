import type { CodeGroup } from "./code-group.ts";

export const work: CodeGroup = {
  title: "Activities",
  about: "an attempt, or the step, fails with these",
  codes: {
    non_retryable: { cause: "The code threw NonRetryableError.", remedy: "The message is your code's." },
    thrown_value: { cause: "The code threw a value that is not an Error.", remedy: "Throw an Error." },
    unknown_activity: {
      cause: "No worker or orchestrator here has an activity of this name.",
      remedy: "Deploy the application that has it.",
    },
    unknown_call: {
      cause: "The session type has no call of this name.",
      remedy: "Deploy the application that has it.",
    },
    invalid_output: {
      cause: "A result does not fit its schema.",
      remedy: "The message names the field and the rule.",
    },
    invalid_batch_result: {
      cause: "A batched call returned another number of results than it got inputs.",
      remedy: "Return one result for each input.",
    },
    poisoned: {
      cause: "The task began as often as allowed, and each time its worker or session was lost.",
      remedy: "Look at what the work does to its worker (memory, exit); the message has the last cause.",
    },
    worker_shutdown: { cause: "The worker goes away; another one runs the work again.", remedy: "Nothing." },
    not_on_a_worker: {
      cause: "A local activity used something only workers have.",
      remedy: "Run it with ctx.run.",
    },
    activity_not_hosted: {
      cause: "An activity was to run on a session whose state is in a program of its own.",
      remedy: "Make it a call of the session.",
    },
    invalid_task: {
      cause: "A task in the queue cannot be read; it is a dead letter.",
      remedy: "Upgrade the worker, or correct the publisher.",
    },
    unreadable_task: {
      cause: "A task could not be read by any worker that tried.",
      remedy: "Upgrade the workers; the letter can be retried.",
    },
    wrong_subject: {
      cause: "A task lay on the subject of another activity.",
      remedy: "Correct its publisher.",
    },
    stream_chunk_too_large: {
      cause: "A chunk written with ctx.stream is over 256 KiB.",
      remedy: "Write smaller chunks, or keep the value elsewhere.",
    },
    stream_closed: {
      cause: "ctx.stream was used after its run was over.",
      remedy: "Await the writes before returning.",
    },
    stream_unavailable: {
      cause: "A chunk was not confirmed by the server.",
      remedy: "The attempt is repeated by its policy; see why NATS does not answer.",
    },
    events_not_shared: {
      cause: "A session that computes on several threads cannot share its events.",
      remedy: "Send what it needs with the call.",
    },
    missing_tags: {
      cause: "An activity that requires tags was to run on a session whose holder has not all of them.",
      remedy: "Open the session with `placement: { tags }`.",
    },
    not_thread_safe: {
      cause: "A second call ran on a state that says threadSafe: false.",
      remedy: "Leave `concurrency` at 1 for this type.",
    },
  },
};
