import type { CodeGroup } from "./code-group.ts";

export const sessions: CodeGroup = {
  title: "Sessions",
  about: "what ctx.openSession and calls throw, and why a claim is not taken",
  codes: {
    session_lost: {
      cause: "The worker that held the session died, stalled or was cut off.",
      remedy: "`holdfast sessions explain <id>` says what happened.",
    },
    session_creation_timeout: {
      cause: "No worker took the session within its creation time.",
      remedy: "`holdfast sessions explain <id>` says why each worker did not.",
    },
    session_init_failed: {
      cause: "init, restore or rebuild threw as often as allowed.",
      remedy: "The cause is your code's error.",
    },
    session_quota_exceeded: {
      cause: "A quota of the installation is reached and the opening was not to wait.",
      remedy: "Let it wait, or raise the quota.",
    },
    session_resource_gone: {
      cause: "The worker or resource the session is bound to is gone.",
      remedy: "Open a new one, or use another loss policy.",
    },
    session_unusable: {
      cause: "The session was closed, given back, or belongs to another instance or type.",
      remedy: "Open it anew.",
    },
    invalid_key: {
      cause: "The key of a session is not one token of 1 to 128 characters of A-Z a-z 0-9 _ -.",
      remedy: "Encode other characters, for example as base64url, or use a hash.",
    },
    invalid_metadata: {
      cause: "A name or value of a session's metadata is not allowed, or there are too many.",
      remedy:
        "At most 64 names of 1 to 128 characters, none beginning with holdfast-, with strings of at most 1024 characters; null removes a name.",
    },
    invalid_blob: {
      cause:
        "A session's blob has a name that is not allowed, is not bytes or is too large, or the session has too many blobs.",
      remedy:
        "At most 64 names of 1 to 128 characters of A-Z a-z 0-9 . _ -, each with bytes of at most 64 MB.",
    },
    session_config_conflict: {
      cause: "The key is open with a config other than the one named.",
      remedy: "Name the same config or none, close the key first, or use another key.",
    },
    session_unreachable: {
      cause: "No orchestrator answers requests for sessions by key.",
      remedy: "Start an orchestrator of this version; `holdfast doctor` lists the live services.",
    },
    call_outcome_unknown: {
      cause:
        "The holder of the session does not know the call any more: it may have run, and its answer is lost.",
      remedy:
        'Make the call again if that does no harm, or open the key with `onLost: "reclaim"`, which does so.',
    },
    session_id_taken: {
      cause: "Another instance owns a session of this id.",
      remedy: "Choose another id, or leave it out.",
    },
    unknown_session_type: {
      cause: "The process has no session type of this name.",
      remedy: "Deploy the application that has it.",
    },
    seat_lost: {
      cause: "The claim took so long that its seat in the quota was cleared.",
      remedy: "It is claimed again by itself.",
    },
    invalid_claim: { cause: "A claim cannot be read; it is a dead letter.", remedy: "Upgrade the workers." },
    invalid_work: {
      cause: "A message to a session cannot be read; it is a dead letter.",
      remedy: "Upgrade the worker.",
    },
    invalid_checkpoint: {
      cause: "`checkpoint` returned something other than bytes.",
      remedy: "Return a Uint8Array.",
    },
    checkpoint_missing: {
      cause: "The checkpoint is no longer in the blob store.",
      remedy: 'Use `onLost: "rebuild"`, or raise the retention.',
    },
    checkpoint_too_large: {
      cause: "The checkpoint is over the limit.",
      remedy: "Keep less in it; put large data elsewhere and a reference into it.",
    },
    no_such_state: {
      cause: "The worker asked a host for a state the host does not have.",
      remedy: "The session is claimed anew by itself.",
    },
    host_gone: {
      cause: "The process or thread that had the session's state ended.",
      remedy: "The message has its last words; look for memory and exit codes.",
    },
    host_message_too_large: {
      cause: "A message to or from a host is over its limit.",
      remedy: "Raise host.maxMessageMb, or pass a reference.",
    },
    chunk_of_no_request: {
      cause: "A host wrote a chunk for a request that is over.",
      remedy: "Write chunks before the answer (host-protocol.md).",
    },
    invalid_lease_ttl: {
      cause: "A lease time is no whole number of seconds, or below one.",
      remedy: "Use whole seconds.",
    },
    server_clocks_apart: {
      cause: "The clocks of the NATS servers differ more than leases allow.",
      remedy: "Run NTP on every NATS server.",
    },
    lease_thread_unavailable: {
      cause: "The thread that renews leases does not answer.",
      remedy: "The process restarts it; if it stays, look for a starved machine.",
    },
    lease_thread_answer: {
      cause: "The thread that renews leases sent an answer that no request expects.",
      remedy: "Report it with the log.",
    },
    lease_thread_failed: {
      cause: "The thread that renews leases failed.",
      remedy: "The message has the reason.",
    },
    claim_unanswered: {
      cause: "NATS did not answer a claim; if it was stored it runs out by itself.",
      remedy: "It is tried again by itself.",
    },
    seat_unanswered: {
      cause: "NATS did not answer the taking of a quota seat.",
      remedy: "It is tried again by itself.",
    },
  },
};
