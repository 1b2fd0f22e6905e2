/** Exit codes. docs/cli.md and `holdfast --help` are generated from this table. */
import { HoldfastError, isFault } from "../../../shared/errors/index.ts";

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  timeout: 4,
  connection: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

export const exitCodeMeanings: Readonly<Record<keyof typeof exitCodes, string>> = {
  ok: "done",
  failed:
    "it did not go well: the orchestration did not complete, the engine refused, the code disagrees with the history, the doctor found something wrong, a law is broken, or you did not confirm",
  usage: "wrong arguments, settings or input, or a confirmation that could not be asked for",
  notFound:
    "there is no such orchestration, instance, query, update, schedule, session, session type, call, pool, blob, worker, dead letter or context",
  timeout: "not in time",
  connection: "no usable NATS server",
  interrupted: "interrupted",
};

const byCode: Readonly<Record<string, ExitCode>> = {
  instance_not_found: exitCodes.notFound,
  unknown_orchestration: exitCodes.notFound,
  schedule_not_found: exitCodes.notFound,
  session_not_found: exitCodes.notFound,
  blob_not_found: exitCodes.notFound,
  worker_not_found: exitCodes.notFound,
  dead_letter_not_found: exitCodes.notFound,
  context_not_found: exitCodes.notFound,
  result_timeout: exitCodes.timeout,
  query_timeout: exitCodes.timeout,
  unknown_query: exitCodes.notFound,
  update_timeout: exitCodes.timeout,
  unknown_update: exitCodes.notFound,
  unknown_session_type: exitCodes.notFound,
  unknown_call: exitCodes.notFound,
  pool_not_found: exitCodes.notFound,
  invalid_config: exitCodes.usage,
  invalid_key: exitCodes.usage,
  invalid_id: exitCodes.usage,
  invalid_input: exitCodes.usage,
  invalid_duration: exitCodes.usage,
  invalid_option: exitCodes.usage,
  invalid_schedule: exitCodes.usage,
  payload_too_large: exitCodes.usage,
  not_serialisable: exitCodes.usage,
  value_missing: exitCodes.usage,
  outcome_unknown: exitCodes.connection,
  no_stream: exitCodes.connection,
  jetstream_disabled: exitCodes.connection,
  bus_closed: exitCodes.connection,
  interrupted: exitCodes.interrupted,
};

export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof HoldfastError) && !isFault(error)) return exitCodes.failed;
  const known = byCode[error.code];
  if (known !== undefined) return known;
  if (error.code.startsWith("nats_")) return exitCodes.connection;
  return isFault(error, "config") || isFault(error.cause, "config") ? exitCodes.usage : exitCodes.failed;
}

const names = Object.keys(exitCodes) as (keyof typeof exitCodes)[];

export const exitCodesHelp = `
Exit codes:
${names.map((name) => `  ${String(exitCodes[name]).padEnd(3)}  ${exitCodeMeanings[name]}`).join("\n")}`;
