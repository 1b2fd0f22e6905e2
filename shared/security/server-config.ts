/** The part of a nats-server configuration that defines accounts, their users, permissions and limits. */
import { subjects } from "../bus/index.ts";
import type { Scope } from "./grants.ts";
import { longestAnswerMs, type Permissions, permissionsOf } from "./permissions.ts";
import type { RoleName } from "./roles.ts";

interface UserSpec {
  name: string;
  role: RoleName;
  scope?: Scope;
}

/** The user's public keys: one, or the old and the new one during a rotation. */
export interface KeyedUser extends UserSpec {
  nkeys: readonly string[];
}

/**
 * One installation, separate from all others on the server: accounts share no messages, streams or limits.
 */
export interface AccountSpec<U extends UserSpec = KeyedUser> {
  name: string;
  prefix: string;
  users: readonly U[];
  limits: AccountLimits;
}

export interface AccountLimits {
  /** Bytes on disk; -1 for no limit. */
  storeBytes: number;
  streams: number;
  consumers: number;
  connections: number;
}

export const noLimits: AccountLimits = { storeBytes: -1, streams: -1, consumers: -1, connections: -1 };

export interface AccountsOptions {
  /**
   * Name of a user of the first account who has all permissions and needs no key: for servers that trust everybody who
   * can reach them.
   */
  everybody?: string | undefined;
}

export function accountsConfig(
  accounts: readonly AccountSpec[],
  { everybody }: AccountsOptions = {},
): string {
  return [
    "accounts {",
    ...accounts.flatMap((account, index) => [
      `  ${account.name} {`,
      `    jetstream { max_file: ${account.limits.storeBytes}, max_streams: ${account.limits.streams}, max_consumers: ${account.limits.consumers} }`,
      ...(account.limits.connections > 0
        ? [`    limits { max_connections: ${account.limits.connections} }`]
        : []),
      "    users: [",
      ...(everybody !== undefined && index === 0
        ? [`      { user: ${everybody}, password: ${everybody} }`]
        : []),
      ...account.users.flatMap((user) => user.nkeys.map((nkey) => userLine(nkey, user, account.prefix))),
      "    ]",
      "  }",
    ]),
    "  SYS { users: [] }",
    "}",
    "system_account: SYS",
    ...(everybody === undefined ? [] : [`no_auth_user: ${everybody}`]),
    "",
  ].join("\n");
}

function userLine(nkey: string, { name, role, scope }: UserSpec, prefix: string): string {
  const permissions = permissionsOf(role, subjects(prefix), scope);
  return `      # ${name}\n      { nkey: ${nkey}, permissions: ${permissionsText(permissions)} }`;
}

function permissionsText({ publish, subscribe, answers }: Permissions): string {
  const list = (all: readonly string[]) => `[${all.map((one) => JSON.stringify(one)).join(", ")}]`;
  const response = `{ max: 1, expires: "${longestAnswerMs / 1000}s" }`;
  return [
    `{ publish: { allow: ${list(publish.allow)}${publish.deny.length > 0 ? `, deny: ${list(publish.deny)}` : ""} }`,
    `subscribe: { allow: ${list(subscribe.allow)} }${answers ? `, allow_responses: ${response}` : ""} }`,
  ].join(", ");
}
