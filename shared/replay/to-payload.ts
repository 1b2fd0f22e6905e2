import type { Payload } from "../../schemas/index.ts";
import { HoldfastError } from "../errors/index.ts";

/** A snapshot of a user's value as JSON: what the code does to it afterwards changes nothing. */
export function toPayload(value: unknown): { payload: Payload; bytes: number } {
  if (value === undefined) return { payload: { json: undefined }, bytes: 0 };
  const text = textOf(value);
  // Strings and booleans are what they are; the rest is what JSON makes of it (NaN is null, dates are text).
  const plain = typeof value === "string" || typeof value === "boolean";
  return { payload: { json: plain ? value : JSON.parse(text) }, bytes: Buffer.byteLength(text) };
}

function textOf(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw notSerialisable(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (text === undefined) throw notSerialisable(`a ${typeof value} has no JSON form`);
  return text;
}

const notSerialisable = (why: string, cause?: unknown): HoldfastError =>
  new HoldfastError({
    code: "not_serialisable",
    message: `the value cannot be turned into JSON: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });
