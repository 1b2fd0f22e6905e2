import type { CodeGroup } from "./code-group.ts";

export const code: CodeGroup = {
  title: "Orchestration code",
  about: "an instance fails or is parked with these",
  codes: {
    nondeterminism: {
      cause: "Code and history disagree: the code asks for another step than the one recorded.",
      remedy:
        "Deploy code that follows the history, or use ctx.patched; `holdfast replay <id> --app <module>` tries it.",
    },
    non_durable_await: {
      cause: "The code awaits something the engine does not control (a timer, a fetch).",
      remedy: "Put it into an activity; use ctx.sleep for time.",
    },
    non_durable_call: {
      cause: "The code called something that touches the outside.",
      remedy: "Use ctx.sleep for time and an activity for anything that touches the outside.",
    },
    runaway_turn: {
      cause: "A turn did not end and was stopped with its process.",
      remedy: "Look for an endless loop; deploying other code lets it go on.",
    },
    turn_failed: {
      cause: "The engine failed in a turn of this instance.",
      remedy: "It is tried again by itself; `holdfast get <id>` has the reason.",
    },
    history_too_long: {
      cause: "The execution has as many events as are allowed.",
      remedy: "Continue as new before that (ctx.suggestContinueAsNew, autoContinue).",
    },
    cancelled: {
      cause: "The instance, a scope or a task was cancelled.",
      remedy: "Nothing, or catch it with isCancelled.",
    },
    terminated: {
      cause: "A client terminated the instance: its code could not clean up.",
      remedy: "Start it again if that was a mistake.",
    },
    timeout: {
      cause: "A step, a scope or an activity took longer than its timeout.",
      remedy: "`details.timeout` says which; raise it or make the work quicker.",
    },
    invalid_signal: {
      cause: "The payload of a signal does not fit the schema of the code that waits for it.",
      remedy: "Catch it and wait again, or send a payload that fits; the message names the field.",
    },
    compensation_failed: {
      cause: "Undo steps of a saga failed after the error they answer to.",
      remedy: "`details.failures` names each; undo by hand what they should have undone.",
    },
    not_in_a_handler: {
      cause: "The handler of an update called ctx.continueAsNew.",
      remedy: "Set what the orchestration waits for with ctx.until, and let its own code continue.",
    },
    condition_broken: {
      cause: "The function given to ctx.until changed something or awaited.",
      remedy: "It may only read, and return a boolean.",
    },
    look_only: {
      cause: "A query, validator or condition called a method of the context that does durable work.",
      remedy: "It may read the instance's state, and must change nothing.",
    },
    query_changes_state: {
      cause: "A query handler changed the instance.",
      remedy: "Use an update for changes.",
    },
    validator_broken: {
      cause: "The validator of an update changed something or awaited.",
      remedy: "It may only read, and throw to refuse.",
    },
    needs_newer_fleet: {
      cause: "A step is recorded in a way that an older process still alive cannot read.",
      remedy: "Finish the upgrade: upgrade or stop the version that the message names.",
    },
    needs_newer_version: {
      cause: "A newer version of Holdfast wrote this.",
      remedy: "Upgrade this process.",
    },
    invalid_token: {
      cause: "A session token is not one made by session.token().",
      remedy: "Pass the token on unchanged.",
    },
  },
};
