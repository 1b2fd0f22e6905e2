import type { CodeGroup } from "./code-group.ts";

export const application: CodeGroup = {
  title: "Definitions and loading the application",
  about: "thrown by define…, or when a service starts",
  codes: {
    app_missing: {
      cause: "No application was named.",
      remedy: "Name its module with --app <module> or HOLDFAST_APP.",
    },
    app_not_found: {
      cause: "The application's file is not there.",
      remedy: "Check the path; it is taken from the folder you are in.",
    },
    app_load_failed: {
      cause: "The application's module threw while it was loaded.",
      remedy: "The message has its error and the place.",
    },
    app_empty: {
      cause: "The module exports no definitions.",
      remedy: "Export what defineOrchestration, defineActivity and defineSession return.",
    },
    app_miscompiled: {
      cause: "`using` in a loop was compiled wrongly by an old esbuild.",
      remedy: "Build with a newer esbuild, or let Holdfast load the TypeScript.",
    },
    duplicate_definition: {
      cause: "Two definitions of one kind have the same name.",
      remedy: "Give one of them another name.",
    },
    invalid_name: {
      cause: "A name has characters that a subject cannot carry.",
      remedy: "Use letters, digits, _ and -.",
    },
    invalid_activity_definition: {
      cause: "An option of defineActivity is not possible.",
      remedy: "The message names it.",
    },
    invalid_session_definition: {
      cause: "An option of defineSession is not possible, or two contradict each other.",
      remedy: "The message names it; sessions.md explains each.",
    },
    hosted_elsewhere: {
      cause: "The engine called code here that is in a host's program.",
      remedy: "Call it through its session.",
    },
    unknown_name: {
      cause: "A setting names an activity or session type the application does not have.",
      remedy: "The message lists the names it has.",
    },
    unknown_setting: {
      cause: "An environment variable looks like a setting, but no setting has its name.",
      remedy: "The message lists the settings; configuration.md explains each.",
    },
    invalid_config: {
      cause: "A setting, or the config of a session, does not fit.",
      remedy: "The message names the variable or the field, and the rule.",
    },
    contradictory_settings: {
      cause: "Two settings exclude each other.",
      remedy: "The message names both; keep one.",
    },
    invalid_node_id: {
      cause: "WORKER_NODE_ID has characters or a length that is not allowed.",
      remedy: "Use 1 to 64 characters of A-Z a-z 0-9 _ -.",
    },
    no_app_file: {
      cause:
        "A session type with `isolation` needs the application's file, and the worker was given objects.",
      remedy: "Name the module with --app <module> or HOLDFAST_APP.",
    },
    otel_missing: {
      cause: "Traces are to be exported, but the packages for it are not installed.",
      remedy: "npm install the packages that the message names.",
    },
    port_taken: {
      cause: "The port the service should listen on is taken.",
      remedy: "Choose another one, or stop the process that uses it.",
    },
    cannot_listen: {
      cause: "The address or port cannot be listened on.",
      remedy: "The message has the system's reason.",
    },
  },
};
