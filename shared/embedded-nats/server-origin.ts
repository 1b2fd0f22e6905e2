import type { ServerVersion } from "./server-version.ts";

/** The ways to a server, in the order they are tried. */
export type Origin = "path" | "cache" | "release" | "package";

export interface FoundServer {
  readonly path: string;
  readonly version: ServerVersion;
  readonly origin: Origin;
}

/** The result of one way. If a way fails, the next is tried; the reasons are kept for the final error. */
export type Way = { kind: "found"; server: FoundServer } | { kind: "failed"; reasons: string[] };

export type OnProgress = (line: string) => void;
