export * from "./events.ts";
export * from "./ids.ts";
export * from "./messages.ts";
export * from "./payload.ts";
export * from "./read-models.ts";
export * from "./session.ts";
export * from "./telemetry.ts";
export * from "./tokens.ts";
