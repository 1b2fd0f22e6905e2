/** The application the benchmark runs: the basics example, and definitions that only a benchmark needs. */
export * from "../../examples/basics/app.ts";
export * from "./asked.ts";
export * from "./doomed.ts";
export * from "./held.ts";
export * from "./hosted.ts";
export * from "./stamped.ts";
