/**
 * NATS JSON web tokens, version 2: an operator's statement about an account, and an account's about a user.
 */
import { createHash } from "node:crypto";
import { type KeyPair, publicKeyOf, signWith, subjects } from "../bus/index.ts";
import type { Scope } from "./grants.ts";
import { longestAnswerMs, permissionsOf } from "./permissions.ts";
import type { RoleName } from "./roles.ts";
import type { AccountLimits } from "./server-config.ts";

const header = { typ: "JWT", alg: "ed25519-nkey" };
const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Signed with the seed `issuer`, about the public key `sub`. */
function token(issuer: string, sub: string, name: string, nats: object, now: number): string {
  const claims = {
    iat: Math.floor(now / 1000),
    iss: publicKeyOf(issuer),
    name,
    sub,
    nats: { ...nats, version: 2 },
  };
  const jti = base32(
    createHash("sha512-256")
      .update(JSON.stringify({ jti: "", ...claims }))
      .digest(),
  );
  const signed = `${text(header)}.${text({ jti, ...claims })}`;
  return `${signed}.${Buffer.from(signWith(issuer, Buffer.from(signed))).toString("base64url")}`;
}

export const operatorToken = (operator: KeyPair, systemAccount: string, now: number): string =>
  token(
    operator.seed,
    operator.publicKey,
    "holdfast",
    { type: "operator", system_account: systemAccount },
    now,
  );

const unlimited = { subs: -1, data: -1, payload: -1 };

/** A signing key whose users have these permissions. */
interface RoleKeys extends KeyPair {
  role: RoleName;
  scope: Scope;
}

interface AccountClaims {
  name: string;
  publicKey: string;
  limits: AccountLimits;
  jetStream: boolean;
  /** Keys that sign users, each with the permissions of its role. */
  roles: readonly RoleKeys[];
  prefix: string;
  /** Public keys of users that may not log in any more, whatever token they present. */
  revoked: readonly string[];
}

export function accountToken(operator: KeyPair, account: AccountClaims, now: number): string {
  const { limits, revoked, roles } = account;
  const storage = account.jetStream
    ? {
        mem_storage: -1,
        disk_storage: limits.storeBytes,
        streams: limits.streams,
        consumer: limits.consumers,
      }
    : {};
  const nats = {
    type: "account",
    limits: {
      ...unlimited,
      imports: -1,
      exports: -1,
      wildcards: true,
      conn: limits.connections,
      leaf: -1,
      ...storage,
    },
    default_permissions: { pub: {}, sub: {} },
    ...(roles.length > 0 ? { signing_keys: roles.map((one) => userScope(one, account.prefix)) } : {}),
    ...(revoked.length > 0
      ? { revocations: Object.fromEntries(revoked.map((key) => [key, Math.floor(now / 1000)])) }
      : {}),
  };
  return token(operator.seed, account.publicKey, account.name, nats, now);
}

function userScope({ publicKey, role, scope }: RoleKeys, prefix: string): object {
  const { publish, subscribe, answers } = permissionsOf(role, subjects(prefix), scope);
  const template = {
    ...unlimited,
    pub: { allow: publish.allow, ...(publish.deny.length > 0 ? { deny: publish.deny } : {}) },
    sub: { allow: subscribe.allow },
    ...(answers ? { resp: { max: 1, ttl: longestAnswerMs * 1e6 } } : {}),
  };
  return { kind: "user_scope", key: publicKey, role, template };
}

/**
 * The content of a credentials file. The permissions are in the account's token, under the key that signs
 * users of this role: a user's own token with them would exceed the line length a server accepts.
 */
export function credentials(
  account: string,
  role: RoleKeys,
  user: KeyPair,
  name: string,
  now: number,
): string {
  const jwt = token(role.seed, user.publicKey, name, { type: "user", issuer_account: account }, now);
  return [
    "-----BEGIN NATS USER JWT-----",
    jwt,
    "------END NATS USER JWT------",
    "",
    "-----BEGIN USER NKEY SEED-----",
    user.seed,
    "------END USER NKEY SEED------",
    "",
  ].join("\n");
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(bytes: Uint8Array): string {
  let bits = "";
  for (const byte of bytes) bits += byte.toString(2).padStart(8, "0");
  return (bits.match(/.{1,5}/g) ?? [])
    .map((five) => alphabet[Number.parseInt(five.padEnd(5, "0"), 2)])
    .join("");
}
