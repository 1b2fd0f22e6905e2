/**
 * Writes what happens in a service as JSON lines to stderr. The only listener that turns happenings into
 * text.
 */
import { type Logger, pino } from "pino";
import type { Announce, Happening } from "../shared/runtime/index.ts";

export type { Logger };

export function createLogger(service: string, id: string, level: string): Logger {
  return pino(
    {
      level,
      base: { service, id, pid: process.pid },
      messageKey: "message",
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ["password", "token", "*.password", "*.token"], censor: "…" },
    },
    // Synchronous: what a process logs just before it dies must be written.
    pino.destination({ dest: 2, sync: true }),
  );
}

/** Happenings that occur several times per step: logged at debug level. */
const chatter = new Set<Happening["kind"]>([
  "instance.loaded",
  "turn.committed",
  "message.duplicate",
  "completion.late",
  "capability.missing",
  "activity.started",
  "activity.ended",
  "activity.handed_back",
  "activity.expired",
  "claim.seen",
  "commit.owed",
  "call.started",
  "call.ended",
  "batch.ran",
  "lease.renewed",
  "instance.started",
  "instance.closed",
]);

const troubling = new Set<Happening["kind"]>([
  "bus.disconnected",
  "dead.lettered",
  "instance.parked",
  "turn.fenced",
  "capability.refused",
  "activity.silent",
  "activity.poisoned",
  "session.init_failed",
  "session.lost",
  "lease.lost",
  "worker.died",
  "orchestrator.died",
  "history.long",
  "history.shared",
  "host.refused",
]);

type LogLine = Extract<Happening, { kind: "orchestration.log" | "work.log" | "host.log" }>;

/** True for lines that user code logs, with a level of their own. */
const isLogLine = (happening: Happening): happening is LogLine =>
  happening.kind === "orchestration.log" || happening.kind === "work.log" || happening.kind === "host.log";

function levelOf(happening: Happening): "debug" | "info" | "warn" | "error" {
  if (happening.kind === "fault") return "error";
  if (isLogLine(happening)) return happening.level;
  if (happening.kind === "host.refused" && happening.why === "reply_after_cancel") return "debug";
  if (happening.kind === "lease.lost" && happening.why === "released") return "debug";
  if (troubling.has(happening.kind)) return "warn";
  return chatter.has(happening.kind) ? "debug" : "info";
}

export const logHappenings = (logger: Logger): Announce => {
  return (happening) => {
    const level = levelOf(happening);
    if (!logger.isLevelEnabled(level)) return;
    if (happening.kind === "fault") {
      const { error, message, ...fields } = happening;
      logger.error({ ...fields, ...(error === undefined ? {} : { err: error }) }, message);
    } else if (isLogLine(happening)) {
      const { message, level: _, ...fields } = happening;
      logger[level](fields, message);
    } else {
      logger[level](happening);
    }
  };
};
