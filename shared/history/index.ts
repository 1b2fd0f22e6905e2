export { type FoundHistory, HistoryReader, type ReadCommit } from "./history-reader.ts";
export {
  type AppendOutcome,
  type HistoryMark,
  HistoryStore,
  type HistoryStoreOptions,
  type LoadedHistory,
  type Position,
  type ReadOn,
  type SeenHistory,
} from "./store.ts";
