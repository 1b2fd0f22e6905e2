/** Converts between values and bytes. Bytes from the wire are measured before they are parsed (F32). */
import type { z } from "zod";
import { fits } from "../../schemas/fits.ts";
import { Fault, isDeeperThan, maxMessageDepth, messageOf } from "../errors/index.ts";
import { unknownKinds } from "./delivery/unknown-kind.ts";

export type Decoded<T> =
  | { kind: "ok"; value: T }
  /** `newer`: well formed, but with kinds that only a newer version knows (E1). */
  | { kind: "invalid"; message: string; newer?: true };

interface DecodeLimits {
  maxBytes?: number;
  maxDepth?: number;
}

const defaultMaxBytes = 64 * 1024 * 1024;
const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encode(value: unknown): Uint8Array {
  const text = JSON.stringify(value);
  if (text === undefined) {
    throw new Fault("bug", { code: "not_serialisable", message: `a ${typeof value} has no JSON form` });
  }
  return utf8(text);
}

/** Most texts are plain ASCII, and copying ASCII is an order of magnitude faster than encoding it. */
export const utf8 = (text: string): Uint8Array =>
  Buffer.from(text, Buffer.byteLength(text) === text.length ? "latin1" : "utf8");

export function decode<S extends z.ZodType>(
  schema: S,
  bytes: Uint8Array,
  limits?: DecodeLimits,
): Decoded<z.output<S>> {
  const parsed = parseJson(bytes, limits);
  if (parsed.kind === "invalid") return parsed;
  if (fits(schema, parsed.value)) return { kind: "ok", value: parsed.value };
  const checked = schema.safeParse(parsed.value);
  if (checked.success) return { kind: "ok", value: checked.data };
  const unknown = unknownKinds(checked.error, parsed.value);
  return unknown === undefined
    ? { kind: "invalid", message: describe(checked.error) }
    : { kind: "invalid", message: `made by a newer version: ${unknown}`, newer: true };
}

/**
 * Parses JSON of unknown origin into a value that is safe to inspect: bounded in size and depth, without
 * prototype keys.
 */
export function parseJson(bytes: Uint8Array, limits: DecodeLimits = {}): Decoded<unknown> {
  const { maxBytes = defaultMaxBytes, maxDepth } = limits;
  if (bytes.length > maxBytes) {
    return { kind: "invalid", message: `${bytes.length} bytes, at most ${maxBytes} are allowed` };
  }
  let text: string;
  try {
    text = strictText.decode(bytes);
  } catch {
    return { kind: "invalid", message: "not UTF-8 text" };
  }
  return parseText(text, maxDepth);
}

export function parseText(text: string, maxDepth = maxMessageDepth): Decoded<unknown> {
  if (isDeeperThan(text, maxDepth))
    return { kind: "invalid", message: `nested deeper than ${maxDepth} levels` };
  try {
    return { kind: "ok", value: suspicious.test(text) ? JSON.parse(text, harmless) : JSON.parse(text) };
  } catch (error) {
    return {
      kind: "invalid",
      message: `not JSON: ${messageOf(error)}`,
    };
  }
}

/** JSON may spell a key with escapes, so a text with any escape takes the careful path. */
const suspicious = /__proto__|"constructor"|\\u/;

/**
 * Drops keys through which a careless merge would reach a prototype; any other key called `constructor` is
 * the user's.
 */
function harmless(key: string, value: unknown): unknown {
  if (key === "__proto__") return undefined;
  if (
    key === "constructor" &&
    typeof value === "object" &&
    value !== null &&
    Object.hasOwn(value, "prototype")
  ) {
    return undefined;
  }
  return value;
}

function describe(error: z.ZodError): string {
  const shown = error.issues.slice(0, 3).map((issue) => {
    const path = issue.path.map(String).join(".");
    return path === "" ? issue.message : `${path}: ${issue.message}`;
  });
  const more = error.issues.length - shown.length;
  return shown.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
