export * from "./fleet.ts";
export * from "./generation.ts";
