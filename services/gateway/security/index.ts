export { Access } from "./access.ts";
export { cookieName, loginCookie, oidcCookie, setCookie } from "./cookies.ts";
export { hostAllowed, hostnameOf, isLoopback, writeAllowedFrom } from "./hosts.ts";
export {
  type Grant,
  type Identity,
  type PayloadReaders,
  parseGrant,
  payloadReaders,
  type Role,
  roleAllows,
  roles,
  type TokenScope,
} from "./identity.ts";
export { ApiToken, IssuedTokens } from "./issued-tokens.ts";
export { isSafeIssuer, Oidc, type OidcConfig } from "./oidc.ts";
export { TrustedProxies } from "./proxies.ts";
export { RateLimit } from "./rate-limit.ts";
export { hiderOf, noUsersValue, shapeOf, usersText } from "./shapes.ts";
export { writeTokenFile } from "./token-file.ts";
export { type ConfiguredToken, parseTokens, Tokens } from "./tokens.ts";
