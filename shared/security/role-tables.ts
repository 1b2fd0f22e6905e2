/**
 * Writes and parses the tables of roles in docs/security.md, so that a test can compare them with the data.
 */
import type { Permissions } from "./permissions.ts";
import { type RoleName, roleNames, roles } from "./roles.ts";

export const roleTables = (): string => roleNames.map(roleTable).join("\n");

function roleTable(role: RoleName): string {
  const { summary, answers } = roles[role];
  const never = roles[role].never?.({}) ?? [];
  const rows = roles[role].grants({}).map(({ why, publish = [], subscribe = [] }) => {
    const shown = (patterns: readonly string[]) =>
      [...new Set(patterns.map(plain))].map(code).join(" ") || "–";
    return `| ${why} | ${shown(publish)} | ${shown(subscribe)} |`;
  });
  return [
    `### ${role}`,
    "",
    `${summary[0]?.toUpperCase()}${summary.slice(1)}. Listens to \`_INBOX_${role}.>\`${answers ? "; answers each request once" : ""}.`,
    "",
    "| what for | publishes | subscribes |",
    "|---|---|---|",
    ...rows,
    ...(never.length > 0 ? ["", `Never: ${never.map(plain).map(code).join(" ")}`] : []),
    "",
  ].join("\n");
}

const plain = (pattern: string): string => pattern.replaceAll("{.}", "").replaceAll("{_}", "");
const code = (text: string): string => `\`${text}\``;

/** The permissions of a role, read from the tables of a document. */
export function permissionsInTables(document: string, role: RoleName): Permissions {
  const section = document.split(`### ${role}\n`)[1]?.split(/\n##+ /)[0] ?? "";
  const codes = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);
  const rows = section.split("\n").flatMap((line) => {
    const [, why, publish, subscribe] = /^\| (.+?) \| (.+) \| (.+) \|$/.exec(line) ?? [];
    return why && publish && subscribe && why !== "what for" ? [{ publish, subscribe }] : [];
  });
  const never = codes(/^Never: (.+)$/m.exec(section)?.[1] ?? "");
  return {
    publish: { allow: rows.flatMap(({ publish }) => codes(publish)), deny: never },
    subscribe: { allow: [...rows.flatMap(({ subscribe }) => codes(subscribe)), `_INBOX_${role}.>`] },
    answers: /; answers each request/.test(section),
  };
}
