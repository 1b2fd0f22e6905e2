export { accountToken, credentials, operatorToken } from "./jwt.ts";
export { allows, covers, hears, inboxPrefix, type Permissions, permissionsOf } from "./permissions.ts";
export { permissionsInTables, roleTables } from "./role-tables.ts";
export { type Grant, type Role, type RoleName, roleNames, roles, type Scope } from "./roles.ts";
export {
  type AccountLimits,
  type AccountSpec,
  accountsConfig,
  type KeyedUser,
  noLimits,
  type UserSpec,
} from "./server-config.ts";
