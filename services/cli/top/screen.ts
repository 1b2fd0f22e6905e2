/** A sample as a screen of text. Pure. */

import { phaseWord } from "../../../shared/wording/index.ts";
import { epochOf, phaseStyles } from "../render/sessions.ts";
import { usedOf } from "../render/workers.ts";
import { type Paint, plain, visibleLength } from "../terminal/paint.ts";
import { span, table, time } from "../terminal/text.ts";
import type { Sample } from "./sample.ts";

interface ScreenOptions {
  paint?: Paint;
  columns?: number;
  rows?: number;
  /** Text of the first line: the command and the server's address. */
  title?: string;
}

export function topScreen(sample: Sample, options: ScreenOptions = {}): string {
  const { paint = plain, rows = Number.POSITIVE_INFINITY, columns = Number.POSITIVE_INFINITY } = options;
  const head = header(sample, paint, options.title ?? "holdfast top");
  const workers =
    sample.workers.length === 0 ? [paint("red", "no worker is alive")] : workerLines(sample, paint);
  const sessions =
    sample.sessions.length === 0 ? [paint("dim", "no sessions are open")] : sessionLines(sample, paint);
  // There may be many sessions: workers keep half of the room, sessions get the rest.
  const room = Math.max(4, rows - head.length - 2);
  const shownWorkers = cut(workers, Math.max(2, Math.floor(room / 2)), paint);
  const shownSessions = cut(sessions, Math.max(2, room - shownWorkers.length), paint);
  return [...head, "", ...shownWorkers, "", ...shownSessions]
    .map((line) => trimmed(line, columns))
    .join("\n");
}

function header(sample: Sample, paint: Paint, title: string): string[] {
  const { instances, perSecond, services, queues } = sample;
  const label = (text: string) => paint("dim", text.padEnd(10));
  const list = (...parts: string[]) => parts.join("  ");
  const alarm = (text: string, n: number) => (n > 0 ? paint("red", `${text} ${n}`) : `${text} ${n}`);
  const needed = (name: string, n: number) => (n === 0 ? paint("red", `${name} 0`) : `${name} ${n}`);
  return [
    `${paint("bold", title)}  ${time(sample.at)}`,
    `${label("instances")}${list(
      `running ${instances.running}`,
      `pending ${instances.pending}`,
      alarm("parked", instances.parked),
      `completed ${instances.completed}`,
      `failed ${instances.failed}`,
      `cancelled ${instances.cancelled + instances.terminated}`,
    )}`,
    `${label("rates")}${list(
      `started ${perSecond.started}/s`,
      `completed ${perSecond.completed}/s`,
      `failed ${perSecond.failed}/s`,
      alarm("sessions lost last minute", sample.lostPerMinute),
    )}`,
    `${label("queues")}${list(
      ...queues.map(({ name, waiting, running }) => `${name} ${waiting}+${running}`),
      alarm("dead letters", sample.deadLetters),
    )}`,
    `${label("services")}${list(
      needed("orchestrators", services.orchestrator),
      needed("watchers", services.watcher),
      `gateways ${services.gateway}`,
    )}`,
  ];
}

const workerLines = ({ workers, at }: Sample, paint: Paint): string[] =>
  table(
    workers,
    [
      { title: "WORKER", value: (worker) => worker.workerId },
      { title: "HOST", value: (worker) => worker.host },
      {
        title: "STATE",
        value: (worker) => (worker.draining ? "draining" : "serving"),
        style: (worker) => (worker.draining ? "yellow" : "green"),
      },
      { title: "ACTIVITIES", value: (worker) => usedOf(worker.activities), align: "right" },
      { title: "SESSIONS", value: (worker) => usedOf(worker.sessions), align: "right" },
      { title: "CALLS", value: (worker) => usedOf(worker.calls), align: "right" },
      {
        title: "MEMORY",
        value: (worker) => `${Math.round(worker.rssBytes / 1_048_576)} MiB`,
        align: "right",
      },
      { title: "LATE", value: (worker) => `${Math.round(worker.eventLoopDelayMs)} ms`, align: "right" },
      { title: "SEEN", value: (worker) => span(Math.max(0, at - worker.seenAt)), align: "right" },
    ],
    paint,
  ).split("\n");

const sessionLines = ({ sessions, at }: Sample, paint: Paint): string[] =>
  table(
    sessions,
    [
      { title: "SESSION", value: (session) => session.sessionId },
      { title: "TYPE", value: (session) => session.type },
      {
        title: "PHASE",
        value: (session) => phaseWord(session.phase),
        style: (session) => phaseStyles[session.phase],
      },
      { title: "WORKER", value: (session) => session.workerId },
      { title: "EPOCH", value: (session) => epochOf(session.epoch), align: "right" },
      { title: "CALLS", value: (session) => session.calls, align: "right" },
      { title: "RUNNING", value: (session) => session.running, align: "right" },
      { title: "WAITING", value: (session) => session.queued, align: "right" },
      { title: "SINCE", value: (session) => span(Math.max(0, at - session.since)), align: "right" },
    ],
    paint,
  ).split("\n");

const cut = (lines: readonly string[], most: number, paint: Paint): string[] =>
  lines.length <= most
    ? [...lines]
    : [...lines.slice(0, most - 1), paint("dim", `… ${lines.length - most + 1} more`)];

/** Cuts a line that would be wrapped; a line that is cut loses its colours. */
const trimmed = (line: string, columns: number): string =>
  visibleLength(line) <= columns
    ? line
    : // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
      line.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, "").slice(0, columns);
