export * from "./fleet.ts";
export * from "./generation.ts";
export * from "./view.ts";
