export type { Scope } from "./grants.ts";
export { headerReach, headerTable } from "./header-reach.ts";
export { accountToken, credentials, operatorToken } from "./jwt.ts";
export { inboxPrefix, mayPublish, maySubscribe, permissionsOf } from "./permissions.ts";
export { permissionsInTables, roleTables } from "./role-tables.ts";
export { type RoleName, roleNames } from "./roles.ts";
export { type AccountSpec, type AccountsOptions, accountsConfig, noLimits } from "./server-config.ts";
