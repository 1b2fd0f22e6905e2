/** Turns values of the code into payloads of commands. */
import type { Payload } from "../../../schemas/index.ts";
import { HoldfastError, isDeeperThan, maxValueBytes, maxValueDepth } from "../../errors/index.ts";
import { notSerialisable, writeJson } from "../../runtime/index.ts";
import { occupant } from "./turn-window.ts";

/**
 * A value that will be stored as the JSON text it has already become. Parsing it again would cost as much as
 * writing it, and only a side effect reads it in this turn.
 */
export class LargeValue {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  /** If it is serialized in place after all, it gives the value itself. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

const largeCharacters = 256 * 1024;

/** A snapshot of a user's value as JSON: later changes by the code do not affect it. */
export function toPayload(value: unknown): { payload: Payload; bytes: number } {
  if (value === undefined) return { payload: { json: undefined }, bytes: 0 };
  const text = writeJson(value, { emptiesObjects: occupant()?.emptiesObjects === true });
  if (isDeeperThan(text, maxValueDepth)) {
    throw notSerialisable(`it is nested deeper than ${maxValueDepth} levels`);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes > maxValueBytes) throw tooLarge(bytes);
  return { payload: { json: jsonOf(value, text) }, bytes };
}

function jsonOf(value: unknown, text: string): unknown {
  if (text.length > largeCharacters) return new LargeValue(text);
  // Strings and booleans stay unchanged; other values become what JSON makes of them (NaN is null, dates are
  // text).
  return typeof value === "string" || typeof value === "boolean" ? value : JSON.parse(text);
}

export const jsonText = (json: unknown): string =>
  json instanceof LargeValue ? json.text : JSON.stringify(json);

export const plainValue = (json: unknown): unknown => (json instanceof LargeValue ? json.toJSON() : json);

const tooLarge = (bytes: number): HoldfastError =>
  new HoldfastError({
    code: "payload_too_large",
    message: `a value of ${bytes} bytes is larger than the limit of ${maxValueBytes}`,
    details: { bytes, limit: maxValueBytes },
  });
