/** Values of options: checked where they are given, the complaint names the option. */
import { InvalidArgumentError, Option } from "commander";
import type { InstanceStatus, Overlap, SessionRecord } from "../../../schemas/index.ts";
// Not by its folder's door, which loads what the command line has no use for.
import { type Duration, parseDuration } from "../../../shared/runtime/duration.ts";

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

/** Every value of a union, once: a new one must break the build here. */
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
