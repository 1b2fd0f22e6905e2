/**
 * What `security init` created, kept in `security.json`: all secrets of an installation, for its
 * administrator alone.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { createKeys } from "../../../shared/bus/index.ts";
import { type RoleName, roleNames } from "../../../shared/security/index.ts";

const Keys = z.object({ seed: z.string(), publicKey: z.string() });
const names = z.array(z.string());
const Scope = z.object({
  /** The group of workers or clients that logs in as this user. Absent: all that are in no group. */
  group: z.string().optional(),
  activities: z.array(z.object({ queue: z.string(), name: z.string() })).optional(),
  pools: names.optional(),
  sessionTypes: names.optional(),
  orchestrations: names.optional(),
  ownHistories: z.boolean().optional(),
});
const User = z.object({
  role: z.enum(roleNames),
  scope: Scope,
  /** The first key is used to log in; during a rotation the previous key follows it. */
  keys: z.array(Keys).min(1),
  /** Signs the user's token, and carries its permissions (mode jwt). */
  signing: Keys,
  revoked: z.array(z.string()).default([]),
});
const Limits = z.object({
  storeBytes: z.number(),
  streams: z.number(),
  consumers: z.number(),
  connections: z.number(),
});
const Tenant = z.object({
  /** Empty string for the only tenant. */
  name: z.string(),
  prefix: z.string(),
  keys: Keys,
  limits: Limits,
  users: z.array(User),
  /** Keys of capabilities: the first makes new capabilities; those made with any of the keys are accepted. */
  capabilityKeys: z.array(z.string()).min(1),
});
const Tls = z.object({
  cert: z.string(),
  key: z.string(),
  ca: z.string().optional(),
  verify: z.boolean(),
  /** The certificate that processes show a server that asks for one. */
  client: z.object({ cert: z.string(), key: z.string() }).optional(),
});
export const Secured = z.object({
  v: z.literal(1),
  mode: z.enum(["nkey", "jwt"]),
  /** Where processes find the folder of their role; undefined: where it was written. */
  path: z.string().optional(),
  port: z.int(),
  storeDir: z.string(),
  tls: Tls.optional(),
  createdAt: z.int(),
  operator: Keys,
  system: Keys,
  tenants: z.array(Tenant),
});
export type Secured = z.infer<typeof Secured>;
export type Tenant = Secured["tenants"][number];
export type User = Tenant["users"][number];

export const newCapabilityKey = (): string => randomBytes(32).toString("base64url");

interface NewSecurityFile extends Pick<Secured, "mode" | "path" | "port" | "storeDir" | "tls"> {
  tenants: readonly string[];
  prefix: string;
  limits: Tenant["limits"];
  scope: User["scope"];
}

export const newSecurityFile = ({ tenants, prefix, limits, scope, ...rest }: NewSecurityFile): Secured => ({
  v: 1,
  ...rest,
  createdAt: Date.now(),
  operator: createKeys("operator"),
  system: createKeys("account"),
  tenants: tenants.map((name) => ({
    name,
    prefix,
    keys: createKeys("account"),
    limits,
    capabilityKeys: [newCapabilityKey()],
    users: roleNames.map((role) => newUser(role, scope)),
  })),
});

const newUser = (role: RoleName, scope: User["scope"]): User => ({
  role,
  scope,
  keys: [createKeys("user")],
  signing: createKeys("account"),
  revoked: [],
});

/** Adds a user for a group of workers or clients to these tenants. */
export const withUser = (
  secured: Secured,
  role: RoleName,
  scope: User["scope"],
  tenants: readonly string[],
): Secured => ({
  ...secured,
  tenants: secured.tenants.map((tenant) =>
    tenants.includes(tenant.name) ? { ...tenant, users: [...tenant.users, newUser(role, scope)] } : tenant,
  ),
});

/** The name of the user's folder: its role, and its group if it has one. */
export const folderOf = ({ role, scope: { group } }: User): string =>
  group === undefined ? role : `${role}-${group}`;

/** `begin` adds new keys beside the old ones; `finish` leaves the new ones alone. */
export function rotated(secured: Secured, step: "begin" | "finish", roles: readonly RoleName[]): Secured {
  const user = (one: User): User => {
    if (!roles.includes(one.role)) return one;
    if (step === "begin") return { ...one, keys: [createKeys("user"), ...one.keys.slice(0, 1)] };
    const gone = one.keys.slice(1).map(({ publicKey }) => publicKey);
    return { ...one, keys: one.keys.slice(0, 1), revoked: [...one.revoked, ...gone] };
  };
  const capabilities = (keys: string[]): string[] => {
    if (!roles.includes("orchestrator")) return keys;
    // All orchestrators must know the new key before the first of them makes a capability with it. The old one stays
    // until the next rotation, for work that is under way.
    const [used = newCapabilityKey(), next] = keys;
    if (step === "begin") return [used, newCapabilityKey()];
    return next === undefined ? keys : [next, used];
  };
  return {
    ...secured,
    tenants: secured.tenants.map((tenant) => ({
      ...tenant,
      users: tenant.users.map(user),
      capabilityKeys: capabilities(tenant.capabilityKeys),
    })),
  };
}
