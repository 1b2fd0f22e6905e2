export { historyViolations } from "./history/index.ts";
export { JournalEntry, readJournalLine } from "./journal.ts";
export { checkedLaws, type LawId, type LawText, lawIds } from "./laws.ts";
export { type Holding, LeaseLog } from "./lease-log.ts";
export { type Report, type Spread, type Violation, violationLines } from "./report.ts";
export { type VerifyOptions, verify } from "./verify.ts";
