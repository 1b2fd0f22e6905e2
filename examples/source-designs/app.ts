/** The samples of the five source designs as one application. Run it: npx holdfast dev --app examples/source-designs/app.ts */
export { agent, hydrate, idempotent, runAgentTurn } from "./activity-sessions.ts";
export {
  classifyDocs as s0ClassifyDocs,
  embeddingEngine,
  failsWithOpenSession,
  mlClassifier,
  multiModelPipeline,
  sendEmail,
} from "./handler-owned-sessions.ts";
export {
  endsWhileRunning,
  infer,
  inferBoth,
  mixed,
  overExecutions,
  rebuildSession,
} from "./movable-sessions.ts";
export { downloadFile, inTwoRuns, processFile, processOneFile, uploadFile } from "./resource-sessions.ts";
export {
  analysis,
  analysisSession,
  classifyImages,
  mlInference,
  requests,
  scrape,
  userSession,
  webScraper,
} from "./worker-profiles.ts";
