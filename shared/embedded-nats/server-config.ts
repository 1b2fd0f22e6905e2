/** The configuration file of the embedded nats-server, as text. */
import { compareServerVersions, type ServerVersion } from "./server-version.ts";

interface ServerConfig {
  version: ServerVersion;
  serverName: string;
  port: number;
  storeDir: string;
  logFile: string;
  syncAlways: boolean;
  /** Further lines of nats-server configuration, copied unchanged. */
  extraConfig?: string | undefined;
}

export function renderServerConfig(config: ServerConfig): string {
  // 2.15 introduced a limit of 1 000 consumers per stream; older servers have neither the limit nor the
  // setting.
  const limitsConsumers = compareServerVersions(config.version, { major: 2, minor: 15, patch: 0 }) >= 0;
  return [
    `server_name: ${quote(config.serverName)}`,
    // Loopback only: there is no password.
    `host: "127.0.0.1"`,
    `port: ${config.port}`,
    `log_file: ${quote(config.logFile)}`,
    "logfile_size_limit: 16777216",
    "logfile_max_num: 3",
    "jetstream {",
    `  store_dir: ${quote(config.storeDir)}`,
    `  sync_interval: ${config.syncAlways ? "always" : '"2m"'}`,
    ...(limitsConsumers ? ["  limits { default_max_consumers: -1 }"] : []),
    "}",
    ...(config.extraConfig === undefined ? [] : [config.extraConfig]),
    "",
  ].join("\n");
}

/** The server's configuration strings accept JSON's escapes. */
const quote = (text: string): string => JSON.stringify(text);
