/** Turns the table of roles into the permissions of a NATS user. */
import type { Subjects } from "../bus/index.ts";
import type { Scope } from "./grants.ts";
import { type RoleName, roles } from "./roles.ts";

export interface Permissions {
  publish: { allow: string[]; deny: string[] };
  subscribe: { allow: string[] };
  /** May reply to requests. */
  answers: boolean;
}

/** Each role receives replies on inboxes of its own, to which no other role may subscribe. */
export const inboxPrefix = (role: RoleName, { group }: Pick<Scope, "group"> = {}): string =>
  group === undefined ? `_INBOX_${role}` : `_INBOX_${role}_${group}`;

export const longestAnswerMs = 3_900_000;

export function permissionsOf(
  role: RoleName,
  names: Pick<Subjects, "prefix">,
  scope: Scope = {},
): Permissions {
  const { grants, answers, never } = roles[role];
  const rows = grants(scope);
  const all = (of: "publish" | "subscribe") => rows.flatMap((row) => row[of] ?? []);
  return {
    publish: { allow: rendered(all("publish"), names), deny: rendered(never?.(scope) ?? [], names) },
    subscribe: { allow: [...rendered(all("subscribe"), names), `${inboxPrefix(role, scope)}.>`] },
    answers,
  };
}

/** Inserts the prefix, and removes duplicates and patterns that another pattern covers. */
function rendered(patterns: readonly string[], { prefix }: Pick<Subjects, "prefix">): string[] {
  const dot = prefix === "" ? "" : `${prefix}.`;
  const bar = prefix === "" ? "" : `${prefix}_`;
  const all = [...new Set(patterns.map((one) => one.replaceAll("{.}", dot).replaceAll("{_}", bar)))];
  return all.filter((one) => !all.some((other) => other !== one && covers(other, one))).sort();
}

/** True if every subject that matches `narrow` matches `wide`. */
export function covers(wide: string, narrow: string): boolean {
  const [a, b] = [wide.split("."), narrow.split(".")];
  for (const [i, token] of a.entries()) {
    if (token === ">") return b.length > i;
    const other = b[i];
    if (other === undefined || other === ">") return false;
    if (token !== "*" && token !== other) return false;
  }
  return a.length === b.length;
}

export const mayPublish = ({ publish }: Permissions, subject: string): boolean =>
  publish.allow.some((one) => covers(one, subject)) && !publish.deny.some((one) => covers(one, subject));

export const maySubscribe = ({ subscribe }: Permissions, subject: string): boolean =>
  subscribe.allow.some((one) => covers(one, subject));
