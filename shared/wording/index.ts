/** Words and numbers as people read them, the same in the CLI, the dashboard and the documents. Loads nothing. */
export { count, span, waits } from "./count-and-span.ts";
export { failureText } from "./failure-text.ts";
export { phaseWord } from "./phase-word.ts";
export { Rates } from "./rates.ts";
export { shortEpoch } from "./short-epoch.ts";
