/**
 * What headers let a role do beyond its permissions, which name subjects: computed from its permissions and the streams.
 * The table of docs/security.md is written from it, and the test of everything forbidden compares it with a real server.
 */
import { allowsRollUps, overlap, type StreamSpec } from "../bus/index.ts";
import type { Permissions } from "./permissions.ts";
import { type RoleName, roleNames } from "./roles.ts";

export interface HeaderReach {
  /** Streams that it can empty: `Nats-Rollup: all`. */
  empties: string[];
  /** Streams on whose subjects, all of them, it can have the server publish: `Nats-Schedule-Target`. */
  schedules: string[];
}

export function headerReach({ publish }: Permissions, streams: readonly StreamSpec[]): HeaderReach {
  const written = streams.filter(({ subjects }) =>
    subjects.some((subject) => publish.allow.some((allowed) => overlap(allowed, subject))),
  );
  const namesOf = (specs: readonly StreamSpec[]) => specs.map(({ name }) => name).sort();
  return {
    empties: namesOf(written.filter(allowsRollUps)),
    schedules: namesOf(written.filter(({ schedules }) => schedules === true)),
  };
}

/** One line for each role, for the document. */
export function headerTable(reachOf: (role: RoleName) => HeaderReach): string {
  const shown = (streams: readonly string[]) => streams.map((one) => `\`${one}\``).join(" ") || "–";
  const row = (role: RoleName) => {
    const { empties, schedules } = reachOf(role);
    return `| ${role} | ${shown(empties)} | ${shown(schedules)} |`;
  };
  return [
    "| role | can empty (`Nats-Rollup`) | can have published, on any subject of (`Nats-Schedule-Target`) |",
    "|---|---|---|",
    ...roleNames.map(row),
    "",
  ].join("\n");
}
