/** Keyed sessions: the id made of type and key, and the digest that identifies a config. */
import { createHash } from "node:crypto";
import {
  KeyedOnLost,
  type KeyedSpec,
  Name,
  type Payload,
  SessionId,
  tokenPattern,
  tokenRule,
} from "../../schemas/index.ts";
import { HoldfastError } from "../errors/index.ts";
import { type Duration, parseDuration, writeJson } from "../runtime/index.ts";
import { validate } from "./schema.ts";
import type { AnySession } from "./session.ts";

const defaultKeyTtl = "5m";
/** Limited because the history of the key's keeper contains the config. */
const mostKeyConfigBytes = 16 * 1024;
const longestPart = 40;

/** Names the session of a key, and says how it is opened if it is not open yet. */
export interface KeyOptions<Config = unknown> {
  /** The same key of the same type is the same session for every instance and client. */
  key: string;
  config?: Config;
  /**
   * What happens to open calls when the session's holder is lost. Default `fail`. The choice of the user that opens
   * the key counts.
   */
  onLost?: KeyedOnLost;
  /** The session is closed after this long without a call. Default: the type's `idleTimeout`, otherwise 5 min. */
  ttl?: Duration;
}

/** Throws `invalid_key` unless the key is one token. */
export function requireKey(key: unknown): Name {
  if (typeof key === "string" && tokenPattern.test(key)) return Name.parse(key);
  const shown =
    typeof key === "string" ? JSON.stringify(key.length > 140 ? `${key.slice(0, 140)}…` : key) : typeof key;
  throw new HoldfastError({
    code: "invalid_key",
    message: `key ${shown} is not allowed: must be ${tokenRule}`,
    details: { rule: tokenRule },
  });
}

/** The id of a key's session. The digest keeps keys apart whose first characters are the same. Throws `invalid_key`. */
export function keyedSessionId(type: string, key: string): SessionId {
  requireKey(key);
  const made = createHash("sha256").update(`${type}/${key}`).digest("hex").slice(0, 24);
  return SessionId.parse(`${type.slice(0, longestPart)}-${key.slice(0, longestPart)}-k${made}`);
}

/** Identifies a config; the empty string if there is none. */
export const configDigest = (config: unknown): string =>
  config === undefined
    ? ""
    : createHash("sha256")
        .update(writeJson(sorted(config)))
        .digest("hex")
        .slice(0, 16);

/** The order of property names makes no difference to the digest. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, one]) => [name, sorted(one)]));
}

/** Checks all options, before anything is opened, and returns the spec of the key's session. */
export function keyedSpec(type: AnySession, options: KeyOptions): KeyedSpec {
  const key = requireKey(options.key);
  const { config } = options;
  if (config !== undefined)
    validate(type.config, config, "invalid_config", `config of session "${type.name}"`);
  const payload: Payload | undefined =
    config === undefined ? undefined : { json: JSON.parse(writeJson(config)) as unknown };
  const bytes = config === undefined ? 0 : Buffer.byteLength(writeJson(config));
  if (bytes > mostKeyConfigBytes) {
    throw refused(
      `its config has ${bytes} bytes, at most ${mostKeyConfigBytes} are allowed: put the name of a file into it instead`,
      type,
    );
  }
  const onLost = KeyedOnLost.safeParse(options.onLost ?? "fail");
  if (!onLost.success)
    throw refused(`onLost is ${JSON.stringify(options.onLost)}: it must be fail, reclaim or restore`, type);
  if (onLost.data === "restore" && !type.checkpoint)
    throw refused("onLost is restore, and the type has no checkpoint", type);
  const ttlMs = parseDuration(options.ttl ?? type.options.idleTimeout ?? defaultKeyTtl, "ttl");
  if (ttlMs < 1) throw refused(`ttl is ${String(options.ttl)}: it must be at least 1 ms`, type);
  return {
    sessionId: keyedSessionId(type.name, key),
    type: Name.parse(type.name),
    key,
    ...(payload && { config: payload }),
    configDigest: configDigest(config),
    onLost: onLost.data,
    ttlMs,
  };
}

const refused = (why: string, type: AnySession): HoldfastError =>
  new HoldfastError({ code: "invalid_option", message: `session "${type.name}" by key: ${why}` });

export const configConflict = (type: string, key: string): HoldfastError =>
  new HoldfastError({
    code: "session_config_conflict",
    message: `session "${type}" with key "${key}" is open with another config: a key has one config for as long as it is open`,
    details: { type, key },
  });
