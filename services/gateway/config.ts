/** The gateway's own settings. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { Fault } from "../../shared/errors/index.ts";
import type { SettingsOf } from "../config.ts";
import { setting } from "../setting.ts";
import { oidcConfig, oidcSettings } from "./oidc-config.ts";
import {
  type ConfiguredToken,
  isLoopback,
  type OidcConfig,
  type PayloadReaders,
  parseTokens,
  payloadReaders,
  TrustedProxies,
} from "./security/index.ts";

export const gatewaySettings = {
  GATEWAY_HOST: z
    .string()
    .min(1)
    .default("127.0.0.1")
    .describe("Address to open the port on. Any but this machine's own needs tokens."),
  GATEWAY_PORT: setting
    .wholeNumber(0, 65_535)
    .default(4440)
    .describe("HTTP, dashboard, `/metrics`, `/readyz`; 0 takes a free port."),
  GATEWAY_TENANTS: z
    .string()
    .optional()
    .meta({ rule: "<host name>=<file>, separated by commas" })
    .describe(
      "One gateway for several tenants: for each the host name it answers to and the file with its settings, as `security init --tenant` writes it. Tokens and log-in are those of each file.",
    ),
  GATEWAY_PUBLIC_URL: z
    .url("must be an address like https://flows.example")
    .transform((url) => url.replace(/\/$/, ""))
    .optional()
    .describe(
      "Address at which people reach the gateway, for links and log-ins; with https, cookies are for https alone. Default: the port it opened.",
    ),
  GATEWAY_TOKENS: z
    .string()
    .optional()
    .describe(
      "`admin:secret,viewer/alice:secret,viewer+payloads/bob:secret`, or `generate` for one admin token, made at each start, whose link is in `GATEWAY_TOKEN_FILE`.",
    ),
  GATEWAY_TOKENS_FILE: z.string().optional().describe("The same, one a line, in a file."),
  GATEWAY_TOKEN_FILE: z
    .string()
    .optional()
    .describe(
      "Where the link with the generated token is written, readable by its owner alone. Default: `.holdfast/gateway-<port>.link` in the home folder.",
    ),
  GATEWAY_LOG_TOKEN: setting.flag
    .default(false)
    .describe(
      "Writes the link with the generated token to the log as well: for a machine whose log only its owner reads.",
    ),
  GATEWAY_PAYLOADS: setting
    .oneOf(...payloadReaders)
    .default("viewer")
    .describe(
      "From which role on callers see users' values (inputs, outputs, messages of errors); others see their shapes. `granted`: only callers with `+payloads`.",
    ),
  GATEWAY_AUDIT_READS: setting.flag
    .default(true)
    .describe(
      "Records in the audit, too, which caller looked at which values: once a minute for each caller and each instance or session, once an hour for a list.",
    ),
  GATEWAY_TRUSTED_PROXIES: setting.list
    .refine(areNetworks, "must be addresses or networks like 10.0.0.5 or 10.0.0.0/8")
    .default([])
    .meta({ rule: "addresses and networks, separated by commas" })
    .describe(
      "Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, for rates, audit and cookies.",
    ),
  GATEWAY_ALLOWED_HOSTS: setting.list
    .default([])
    .describe("Names a browser may use beside localhost and plain addresses."),
  GATEWAY_READ_ONLY: setting.flag.default(false).describe("Refuses every request that changes something."),
  GATEWAY_RATE_LIMIT: setting
    .wholeNumber(1, 1_000_000)
    .default(100)
    .describe("Requests a second one caller may make; bursts of four times that pass."),
  GATEWAY_MAX_BODY_BYTES: setting
    .wholeNumber(1024, 64 * 1024 * 1024)
    .default(4 * 1024 * 1024)
    .describe("Largest request body."),
  GATEWAY_MAX_HISTORY_BYTES: setting
    .wholeNumber(64 * 1024, 1024 * 1024 * 1024)
    .default(64 * 1024 * 1024)
    .describe(
      "Largest history that is read into memory for a page or a download; a page of a stream ends there.",
    ),
  ...oidcSettings,
};

function areNetworks(entries: string[]): boolean {
  try {
    new TrustedProxies(entries);
    return true;
  } catch {
    return false;
  }
}

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  /** Undefined: clients reach the gateway at the address where it listens. */
  readonly publicUrl: string | undefined;
  readonly tokens: readonly ConfiguredToken[];
  /** Generated at start because the settings ask for it. */
  readonly generatedToken: string | undefined;
  /** Where the link with the generated token is written; undefined: below the home folder. */
  readonly tokenFile: string | undefined;
  readonly logToken: boolean;
  readonly oidc: OidcConfig | undefined;
  readonly payloadReaders: PayloadReaders;
  readonly auditReads: boolean;
  readonly trustedProxies: readonly string[];
  readonly maxHistoryBytes: number;
  readonly allowedHosts: readonly string[];
  readonly readOnly: boolean;
  readonly requestsPerSecond: number;
  readonly maxBodyBytes: number;
}

export const defaultGatewayConfig: GatewayConfig = {
  host: "127.0.0.1",
  port: 4440,
  publicUrl: undefined,
  tokens: [],
  generatedToken: undefined,
  tokenFile: undefined,
  logToken: false,
  oidc: undefined,
  payloadReaders: "viewer",
  auditReads: true,
  trustedProxies: [],
  maxHistoryBytes: 64 * 1024 * 1024,
  allowedHosts: [],
  readOnly: false,
  requestsPerSecond: 100,
  maxBodyBytes: 4 * 1024 * 1024,
};

export function gatewayConfig(
  settings: SettingsOf<typeof gatewaySettings>,
  makeToken: () => string,
): GatewayConfig {
  const generate = settings.GATEWAY_TOKENS === "generate";
  const generatedToken = generate ? makeToken() : undefined;
  const tokens = [
    ...(generatedToken === undefined
      ? parseTokens(settings.GATEWAY_TOKENS ?? "", "GATEWAY_TOKENS")
      : [{ role: "admin" as const, name: "admin", token: generatedToken }]),
    ...(settings.GATEWAY_TOKENS_FILE === undefined ? [] : readTokens(settings.GATEWAY_TOKENS_FILE)),
  ];
  const oidc = oidcConfig(settings, settings.GATEWAY_PUBLIC_URL);
  requireTokens(settings.GATEWAY_HOST, tokens.length > 0 || oidc !== undefined);
  return Object.freeze({
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
    publicUrl: settings.GATEWAY_PUBLIC_URL,
    tokens,
    generatedToken,
    tokenFile: settings.GATEWAY_TOKEN_FILE,
    logToken: settings.GATEWAY_LOG_TOKEN,
    oidc,
    payloadReaders: settings.GATEWAY_PAYLOADS,
    auditReads: settings.GATEWAY_AUDIT_READS,
    trustedProxies: settings.GATEWAY_TRUSTED_PROXIES,
    maxHistoryBytes: settings.GATEWAY_MAX_HISTORY_BYTES,
    allowedHosts: settings.GATEWAY_ALLOWED_HOSTS,
    readOnly: settings.GATEWAY_READ_ONLY,
    requestsPerSecond: settings.GATEWAY_RATE_LIMIT,
    maxBodyBytes: settings.GATEWAY_MAX_BODY_BYTES,
  });
}

/** The file with the generated token's link. Its reader may do everything, so only its owner can read it. */
export const tokenFileOf = (config: GatewayConfig, port: number | string): string =>
  config.tokenFile ?? join(homedir(), ".holdfast", `gateway-${port}.link`);

/** Without tokens every client that reaches the port may do anything, so only this machine may reach it. */
export function requireTokens(host: string, asksWhoCalls: boolean): void {
  if (asksWhoCalls || isLoopback(host)) return;
  throw new Fault("config", {
    code: "gateway_open",
    message: `GATEWAY_HOST=${host} would admit every client: no tokens are set`,
    hint: "Set GATEWAY_TOKENS=admin:<secret> (or GATEWAY_TOKENS=generate), a log-in provider (GATEWAY_OIDC_ISSUER), or bind to 127.0.0.1.",
  });
}

function readTokens(path: string): ConfiguredToken[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new Fault("config", {
      code: "invalid_config",
      message: `GATEWAY_TOKENS_FILE=${path} cannot be read`,
      cause,
    });
  }
  return parseTokens(text, "GATEWAY_TOKENS_FILE");
}
