/** Parsers for option values; an error names the option. */
import { InvalidArgumentError, Option } from "commander";
import type { InstanceStatus, KeyedOnLost, Overlap, SessionRecord } from "../../../schemas/index.ts";
// Not from the folder's index, which loads code that the command line does not need.
import { type Duration, parseDuration } from "../../../shared/runtime/index.ts";

export const wholeNumber = (text: string): number => {
  if (/^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
  throw new InvalidArgumentError("It must be a whole number above 0.");
};

export const duration = (text: string): number => {
  try {
    return parseDuration(text as Duration, "");
  } catch {
    throw new InvalidArgumentError("It must be a duration like 500ms, 30s, 5m, 2h.");
  }
};

/** Every value of a union, once: a new value must break the build here. */
const every =
  <T extends string>() =>
  <const A extends readonly T[]>(...values: A & ([T] extends [A[number]] ? unknown : never)): readonly T[] =>
    values;

export const statuses = every<InstanceStatus>()(
  "pending",
  "running",
  "parked",
  "completed",
  "failed",
  "cancelled",
  "terminated",
);

export const phases = every<SessionRecord["phase"]>()(
  "parked",
  "opening",
  "claimed",
  "active",
  "rebuilding",
  "lost",
  "failed",
  "closed",
);

export const keyPolicies = every<KeyedOnLost>()("fail", "reclaim", "restore");

export const overlaps = every<Overlap>()(
  "skip",
  "buffer-one",
  "buffer-all",
  "cancel-other",
  "terminate-other",
  "allow",
);

export const choice = (flags: string, description: string, values: readonly string[]): Option =>
  new Option(flags, description).choices([...values]);
