/** Versions of nats-server: parse, compare, and the oldest that Holdfast accepts. */
export interface ServerVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  /** `RC.2` of `2.15.0-RC.2`; a pre-release is older than its release. */
  readonly pre?: string;
}

/** Message TTL with markers and schedules that can be cancelled came with 2.14. */
export const minServerVersion: ServerVersion = { major: 2, minor: 14, patch: 0 };

/** Finds the version in `nats-server: v2.15.1`, `v2.15.0-RC.2` or `2.15.1`. */
export function parseServerVersion(text: string): ServerVersion | undefined {
  const match = /(?:^|[^\d.])(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?/.exec(text);
  if (!match) return undefined;
  const [, major, minor, patch, pre] = match;
  const numbers = { major: Number(major), minor: Number(minor), patch: Number(patch) };
  return pre === undefined ? numbers : { ...numbers, pre };
}

/** Negative when `a` is older than `b`. */
export function compareServerVersions(a: ServerVersion, b: ServerVersion): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch || comparePre(a.pre, b.pre);
}

function comparePre(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a.localeCompare(b, "en", { numeric: true });
}

export const isNewEnough = (version: ServerVersion): boolean =>
  compareServerVersions(version, minServerVersion) >= 0;

export function formatServerVersion({ major, minor, patch, pre }: ServerVersion): string {
  return `${major}.${minor}.${patch}${pre === undefined ? "" : `-${pre}`}`;
}
