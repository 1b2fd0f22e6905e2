/** What the shell is told. Documented in the README of this folder and in `holdfast --help`. */
import { HoldfastError, isFault } from "../../shared/errors/index.ts";

export const exitCodes = {
  ok: 0,
  /** The orchestration did not complete, or the engine refused what was asked. */
  failed: 1,
  /** Wrong arguments, settings or input. */
  usage: 2,
  notFound: 3,
  timeout: 4,
  /** No NATS server, or not one that can be used. */
  connection: 5,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const byCode: Readonly<Record<string, ExitCode>> = {
  instance_not_found: exitCodes.notFound,
  session_not_found: exitCodes.notFound,
  worker_not_found: exitCodes.notFound,
  result_timeout: exitCodes.timeout,
  invalid_id: exitCodes.usage,
  invalid_input: exitCodes.usage,
  invalid_duration: exitCodes.usage,
  payload_too_large: exitCodes.usage,
  not_serialisable: exitCodes.usage,
  outcome_unknown: exitCodes.connection,
  no_stream: exitCodes.connection,
  jetstream_disabled: exitCodes.connection,
  bus_closed: exitCodes.connection,
};

export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof HoldfastError) && !isFault(error)) return exitCodes.failed;
  const known = byCode[error.code];
  if (known !== undefined) return known;
  if (error.code.startsWith("nats_")) return exitCodes.connection;
  return isFault(error, "config") ? exitCodes.usage : exitCodes.failed;
}

export const exitCodesHelp = `
Exit codes: 0 done, 1 the orchestration did not complete or the engine refused, 2 wrong arguments, settings or input,
3 not found, 4 not in time, 5 no usable NATS server.`;
