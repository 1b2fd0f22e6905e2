export * from "./activity.ts";
export { type App, collectApp } from "./app.ts";
export { type DefinitionKind, kindOf } from "./brand.ts";
export type { HostCommand, HostingOptions, HostOptions, Isolation } from "./hosting.ts";
export * from "./message.ts";
export * from "./orchestration.ts";
export { type Schema, type SchemaIn, type SchemaOut, validate } from "./schema.ts";
export * from "./session.ts";
