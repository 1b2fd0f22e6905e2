export { Context, Contexts } from "./contexts.ts";
export { readDevFile, removeDevFile, writeDevFile } from "./dev-file.ts";
export { whereToConnect } from "./where-to-connect.ts";
