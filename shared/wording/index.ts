/** Words and numbers as people read them, the same in the CLI, the dashboard and the documents. Loads nothing. */
export { phaseWord } from "./phase-word.ts";
export { shortEpoch } from "./short-epoch.ts";
