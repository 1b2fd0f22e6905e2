export { type EmbeddedNats, type EmbeddedNatsOptions, startEmbeddedNats } from "./embedded-server.ts";
export { type FindServerOptions, findServer } from "./find-server.ts";
export { readInfo } from "./read-info.ts";
export { defaultCacheDir } from "./server-cache.ts";
export type { FoundServer, OnProgress, Origin } from "./server-origin.ts";
export type { ServerExit } from "./server-process.ts";
export {
  compareServerVersions,
  formatServerVersion,
  isNewEnough,
  minServerVersion,
  parseServerVersion,
  type ServerVersion,
} from "./server-version.ts";
