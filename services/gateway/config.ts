/** The gateway's own settings. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { Fault } from "../../shared/errors/index.ts";
import type { SettingsOf } from "../config.ts";
import { setting } from "../setting.ts";
import { type Identity, isLoopback, parseTokens } from "./security/index.ts";

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
  GATEWAY_PUBLIC_URL: z
    .url("must be an address like https://flows.example")
    .transform((url) => url.replace(/\/$/, ""))
    .optional()
    .describe("Where people reach it, for the link in the log. Default: the port it opened."),
  GATEWAY_TOKENS: z
    .string()
    .optional()
    .describe(
      "`admin:secret,viewer/alice:secret`, or `generate` for one admin token, printed in the log at start.",
    ),
  GATEWAY_TOKENS_FILE: z.string().optional().describe("The same, one a line, in a file."),
  GATEWAY_ALLOWED_HOSTS: setting.list
    .default([])
    .describe("Names a browser may use beside localhost and plain addresses."),
  GATEWAY_READ_ONLY: setting.flag.default(false).describe("Nobody may change anything through it."),
  GATEWAY_RATE_LIMIT: setting
    .wholeNumber(1, 1_000_000)
    .default(100)
    .describe("Requests a second one caller may make; bursts of four times that pass."),
  GATEWAY_MAX_BODY_BYTES: setting
    .wholeNumber(1024, 64 * 1024 * 1024)
    .default(4 * 1024 * 1024)
    .describe("Largest request body."),
};

export interface GatewayConfig {
  readonly host: string;
  readonly port: number;
  /** Undefined: clients reach the gateway at the address where it listens. */
  readonly publicUrl: string | undefined;
  readonly tokens: readonly (Identity & { token: string })[];
  /** Generated at start because the settings ask for it; written to the log. */
  readonly generatedToken: string | undefined;
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
  requireTokens(settings.GATEWAY_HOST, tokens.length);
  return Object.freeze({
    host: settings.GATEWAY_HOST,
    port: settings.GATEWAY_PORT,
    publicUrl: settings.GATEWAY_PUBLIC_URL,
    tokens,
    generatedToken,
    allowedHosts: settings.GATEWAY_ALLOWED_HOSTS,
    readOnly: settings.GATEWAY_READ_ONLY,
    requestsPerSecond: settings.GATEWAY_RATE_LIMIT,
    maxBodyBytes: settings.GATEWAY_MAX_BODY_BYTES,
  });
}

/** Without tokens every client that reaches the port may do anything, so only this machine may reach it. */
export function requireTokens(host: string, tokens: number): void {
  if (tokens > 0 || isLoopback(host)) return;
  throw new Fault("config", {
    code: "gateway_open",
    message: `GATEWAY_HOST=${host} would let anybody in: no tokens are set`,
    hint: "Set GATEWAY_TOKENS=admin:<secret> (or GATEWAY_TOKENS=generate), or bind to 127.0.0.1.",
  });
}

function readTokens(path: string): (Identity & { token: string })[] {
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
