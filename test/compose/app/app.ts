/** An application as users have one: a folder of its own, no package.json, imports from "holdfast". */
export * from "./orchestrations.ts";
export * from "./work.ts";
