export { accountToken, credentials, operatorToken } from "./jwt.ts";
export { allows, hears, inboxPrefix, permissionsOf } from "./permissions.ts";
export { permissionsInTables, roleTables } from "./role-tables.ts";
export { type RoleName, roleNames, type Scope } from "./roles.ts";
export { type AccountSpec, accountsConfig, noLimits } from "./server-config.ts";
