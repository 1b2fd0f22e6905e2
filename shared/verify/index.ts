export { historyViolations } from "./history/index.ts";
export { JournalEntry, readJournalLine } from "./journal.ts";
export { checkedLaws, type LawId, lawIds } from "./laws.ts";
export { LeaseLog } from "./lease-log.ts";
export { type Report, violationLines } from "./report.ts";
export { type VerifyOptions, verify } from "./verify.ts";
