export { hostAllowed, isLoopback, writeAllowedFrom } from "./hosts.ts";
export { RateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { type Identity, parseTokens, type Role, roleAllows, roles, Tokens } from "./tokens.ts";
