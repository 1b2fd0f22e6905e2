export {
  type AppendOutcome,
  HistoryStore,
  type HistoryStoreOptions,
  type LoadedHistory,
  type Position,
} from "./store.ts";
