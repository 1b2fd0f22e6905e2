import type { ServerVersion } from "./server-version.ts";

/** The ways to a server, in the order they are tried. */
export type Origin = "path" | "cache" | "release" | "package";

export interface FoundServer {
  readonly path: string;
  readonly version: ServerVersion;
  readonly origin: Origin;
}

/** What came of one way. A failed way is no fault: the next one is tried, its reasons are kept for the end. */
export type Way = { kind: "found"; server: FoundServer } | { kind: "failed"; reasons: string[] };

export type OnProgress = (line: string) => void;
