import type { CodeGroup } from "./code-group.ts";

export const nats: CodeGroup = {
  title: "NATS",
  about: "between a process and the server",
  codes: {
    nats_unreachable: {
      cause: "No NATS server answers at the address.",
      remedy: "Start nats-server, or check NATS_URL.",
    },
    nats_unauthorized: {
      cause: "The server refuses the credentials.",
      remedy: "Check user and password, token or credentials file.",
    },
    nats_unavailable: {
      cause: "The server did not answer in time, or the servers of the cluster have no leader.",
      remedy:
        "It is tried again by itself; see why NATS does not answer for its streams (`nats stream report`).",
    },
    nats_too_old: { cause: "The server is older than Holdfast needs.", remedy: "Upgrade nats-server." },
    nats_error: {
      cause: "The server answered with an error this version does not know by number.",
      remedy: "The message has NATS's words.",
    },
    nats_data_dir_in_use: {
      cause: "Another process uses the data folder.",
      remedy: "Stop that process, or run beside it with another folder: `holdfast dev --data-dir <folder>`.",
    },
    nats_port_taken: {
      cause: "The port of the NATS server is taken.",
      remedy: "Choose another with --port, or stop the process that uses it.",
    },
    nats_start_failed: {
      cause: "nats-server did not start.",
      remedy: "The message has its last words; the whole log is in the file it names.",
    },
    invalid_address: {
      cause: "An address is missing or malformed.",
      remedy: "Write nats://host:port; several as a list.",
    },
    creds_unreadable: {
      cause: "The credentials file cannot be read.",
      remedy: "Check NATS_CREDS, NATS_NKEY, NATS_PASSWORD_FILE and NATS_TLS_…: each is the path of a file.",
    },
    capability_keys_unreadable: {
      cause: "The file that HOLDFAST_ORCHESTRATOR_CAPABILITY_KEYS names cannot be read, or holds no keys.",
      remedy: "Write one key on each line, or let `holdfast security init` write it.",
    },
    permission_denied: {
      cause: "This NATS user may not do that.",
      remedy:
        "Use the user of the role that does this, or write the rights of this version: `holdfast security init --if-missing`.",
    },
    jetstream_disabled: {
      cause: "JetStream is off on the server or for the account.",
      remedy: "Enable JetStream for the server and the account.",
    },
    no_stream: {
      cause: "No stream answers on this subject.",
      remedy: "Has a service ever run against this server, with this prefix? `holdfast doctor` looks.",
    },
    not_provisioned: {
      cause:
        "Streams or buckets are missing, and this process may not create them (HOLDFAST_PROVISION=never).",
      remedy:
        "Run `holdfast provision` with a user that may create them; the process waits for it as long as NATS_WAIT says.",
    },
    security_exists: {
      cause: "`holdfast security init` was run in this folder before.",
      remedy: "Change the keys with `holdfast security rotate`, or name another folder with --out.",
    },
    security_missing: {
      cause: "There are no keys in the folder.",
      remedy: "Make them with `holdfast security init`, or name their folder with --out.",
    },
    security_unreadable: {
      cause: "`security.json` is not what `holdfast security init` writes.",
      remedy: "Restore it from a backup, or make a new one in another folder.",
    },
    stream_mismatch: {
      cause: "A stream exists with other settings.",
      remedy:
        "All services of one installation need the same settings; another installation needs its own HOLDFAST_PREFIX.",
    },
    subjects_taken: {
      cause: "Another stream has these subjects.",
      remedy: "Delete it or set HOLDFAST_PREFIX.",
    },
    consumer_gone: { cause: "A consumer was deleted.", remedy: "It is created again by itself." },
    too_many_streams: {
      cause: "The account's limit of streams is reached.",
      remedy: "Raise it, or use HISTORY_LAYOUT=shared.",
    },
    too_few_servers: {
      cause: "Fewer servers of the NATS cluster are there than a stream has copies.",
      remedy:
        "Start the missing servers, or lower NATS_REPLICAS; services wait for as long as NATS_WAIT allows.",
    },
    too_many_consumers: {
      cause: "The limit of consumers is reached.",
      remedy: "Raise max_consumers of the stream or default_max_consumers of the server.",
    },
    replicas_need_cluster: {
      cause: "NATS_REPLICAS is higher than the number of servers.",
      remedy: "Use a cluster of at least as many servers.",
    },
    storage_full: {
      cause: "The server has no room left.",
      remedy: "Free disk space or raise the limit of JetStream; then work resumes by itself.",
    },
    append_unanswered: {
      cause: "An append to a history was not answered.",
      remedy: "It is tried again by itself.",
    },
    bus_closed: { cause: "The connection was closed.", remedy: "Connect again." },
    invalid_subject: {
      cause: "A subject is not one NATS can carry.",
      remedy: "Check ids and HOLDFAST_PREFIX.",
    },
    invalid_ttl: {
      cause: "A time to live is below one second or no whole number of seconds.",
      remedy: "Use whole seconds.",
    },
    ttl_disabled: {
      cause: "The stream was made without times to live per message.",
      remedy: "Another installation made it: set HOLDFAST_PREFIX.",
    },
    immutable: {
      cause: "The stream denies purging or deleting.",
      remedy: "Remove the restriction from the stream.",
    },
    invalid_service: {
      cause: "The name or version of a NATS micro service is not allowed.",
      remedy: "Use a plain name and a semantic version.",
    },
  },
};
