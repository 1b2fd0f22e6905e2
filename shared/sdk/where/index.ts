export { Context, Contexts } from "./contexts.ts";
export { type DevFile, readDevFile, removeDevFile, writeDevFile } from "./dev-file.ts";
export { type Environment, type Where, whereToConnect } from "./where-to-connect.ts";
