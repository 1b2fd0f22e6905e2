export { type FoundHistory, HistoryReader } from "./history-reader.ts";
export {
  type HistoryMark,
  HistoryStore,
  type HistoryStoreOptions,
  type Position,
  type SeenHistory,
} from "./store.ts";
