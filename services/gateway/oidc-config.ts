/** The settings of a log-in by an OpenID Connect provider. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { Fault } from "../../shared/errors/index.ts";
import type { SettingsOf } from "../config.ts";
import { setting } from "../setting.ts";
import { type Grant, isSafeIssuer, type OidcConfig, parseGrant, roles } from "./security/index.ts";

export const oidcSettings = {
  GATEWAY_OIDC_ISSUER: z
    .url("must be an address like https://login.example")
    .refine(isSafeIssuer, "must begin with https:// (http:// only on this machine)")
    .optional()
    .describe("An OpenID Connect provider: people log in there instead of with a token."),
  GATEWAY_OIDC_CLIENT_ID: z.string().optional().describe("The gateway's name at the provider."),
  GATEWAY_OIDC_CLIENT_SECRET_FILE: z
    .string()
    .optional()
    .describe("A file with its secret there. Unset: a public client; then one gateway alone serves log-ins."),
  GATEWAY_OIDC_SCOPES: setting.list
    .default(["openid", "profile", "email"])
    .describe("What the provider is asked for. Some give groups only for a scope of their own."),
  GATEWAY_OIDC_GROUPS_CLAIM: z
    .string()
    .min(1)
    .default("groups")
    .describe("The claim with a person's groups."),
  GATEWAY_OIDC_ROLES: z
    .string()
    .optional()
    .describe(
      "`platform=admin,on-call=operator+payloads,staff=viewer`: a role for the members of each group.",
    ),
  GATEWAY_OIDC_SESSION: setting
    .duration(60_000, 30 * 24 * 3_600_000)
    .default(8 * 3_600_000)
    .describe("How long a person stays logged in."),
};
type OidcSettings = SettingsOf<typeof oidcSettings>;

export function oidcConfig(settings: OidcSettings, publicUrl: string | undefined): OidcConfig | undefined {
  const issuer = settings.GATEWAY_OIDC_ISSUER;
  if (issuer === undefined) return undefined;
  const clientId = settings.GATEWAY_OIDC_CLIENT_ID;
  if (clientId === undefined || publicUrl === undefined || settings.GATEWAY_OIDC_ROLES === undefined) {
    const missing = [
      clientId === undefined && "GATEWAY_OIDC_CLIENT_ID",
      publicUrl === undefined && "GATEWAY_PUBLIC_URL",
      settings.GATEWAY_OIDC_ROLES === undefined && "GATEWAY_OIDC_ROLES",
    ].filter((name) => name !== false);
    throw invalid(`GATEWAY_OIDC_ISSUER is set without ${missing.join(", ")}`);
  }
  const file = settings.GATEWAY_OIDC_CLIENT_SECRET_FILE;
  return {
    issuer,
    clientId,
    clientSecret: file === undefined ? undefined : secretIn(file),
    scopes: settings.GATEWAY_OIDC_SCOPES,
    groupsClaim: settings.GATEWAY_OIDC_GROUPS_CLAIM,
    roles: groupRoles(settings.GATEWAY_OIDC_ROLES),
    sessionMs: settings.GATEWAY_OIDC_SESSION,
    publicUrl,
  };
}

function groupRoles(text: string): Map<string, Grant> {
  const pairs = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return new Map(
    pairs.map((pair) => {
      const at = pair.lastIndexOf("=");
      const grant = parseGrant(pair.slice(at + 1));
      if (at < 1 || !grant)
        throw invalid(
          `GATEWAY_OIDC_ROLES: ${JSON.stringify(pair)} is not group=role`,
          `Roles are ${roles.join(", ")}; with +payloads also the right to see values.`,
        );
      return [pair.slice(0, at), grant] as const;
    }),
  );
}

function secretIn(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw invalid(`GATEWAY_OIDC_CLIENT_SECRET_FILE=${path} cannot be read`, undefined, cause);
  }
}

const invalid = (message: string, hint?: string, cause?: unknown): Fault =>
  new Fault("config", { code: "invalid_config", message, ...(hint && { hint }), cause });
