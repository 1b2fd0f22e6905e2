/** Sessions as people read them. Pure. */
import type { SessionRecord } from "../../../schemas/index.ts";
import type { SessionDescription } from "../../../shared/sdk/index.ts";
import { phaseWord } from "../../../shared/sessions/phase-word.ts";
import { shortEpoch } from "../../../shared/sessions/short-epoch.ts";
import { type Paint, plain, type Style } from "../terminal/paint.ts";
import { brief, pairs, span, table, time } from "../terminal/text.ts";

export const phaseStyles: Readonly<Record<SessionRecord["phase"], Style>> = {
  parked: "dim",
  opening: "yellow",
  claimed: "yellow",
  active: "green",
  rebuilding: "yellow",
  lost: "red",
  failed: "red",
  closed: "dim",
};

export const sessionTable = (records: readonly SessionRecord[], paint: Paint = plain): string =>
  table(
    records,
    [
      { title: "ID", value: (record) => record.sessionId },
      { title: "TYPE", value: (record) => record.type },
      {
        title: "PHASE",
        value: (record) => phaseWord(record.phase),
        style: (record) => phaseStyles[record.phase],
      },
      { title: "WORKER", value: (record) => record.workerId },
      { title: "EPOCH", value: (record) => epochOf(record.epoch), align: "right" },
      { title: "INIT", value: (record) => span(record.initMs), align: "right" },
      { title: "OPENED", value: (record) => time(record.openedAt) },
      { title: "INSTANCE", value: (record) => record.instanceId },
    ],
    paint,
  );

export function shownSession(
  { record, live, explanation }: SessionDescription,
  paint: Paint = plain,
): string {
  const facts = pairs(
    [
      ["id", record.sessionId],
      ["type", record.type],
      ["phase", phaseWord(record.phase)],
      ["instance", record.instanceId],
      ["worker", record.workerId],
      ["host", record.host],
      ["resource", record.resourceId],
      ["epoch", epochOf(record.epoch)],
      ["attachment", record.attachment],
      ["opened", time(record.openedAt)],
      ["claimed", time(record.claimedAt)],
      ["lent to", record.lentTo],
      ["init took", span(record.initMs)],
      ["tags", record.requires.tags.join(", ")],
      ["resources", some(record.requires.resources)],
      ["metadata", some(record.metadata)],
      ["calls", live && `${live.calls} done, ${live.running} running, ${live.queued} waiting`],
      ["snapshot", brief(live?.snapshot, 1000)],
      ["error", record.error && `${record.error.message} (${record.error.code})`],
    ],
    paint,
  );
  const owners = record.owners.map(
    ({ workerId, epoch, from, to, end }) =>
      `  epoch ${shortEpoch(epoch)}  ${workerId}  ${time(from)} – ${time(to) ?? "now"}${end === undefined ? "" : `  ${end}`}`,
  );
  return [
    facts,
    "",
    ...explanation,
    ...(owners.length > 0 ? ["", paint("dim", "holders"), ...owners] : []),
  ].join("\n");
}

export const epochOf = (epoch: number | undefined): string | undefined =>
  epoch === undefined ? undefined : shortEpoch(epoch);

const some = (values: Readonly<Record<string, unknown>>): string =>
  Object.keys(values).length > 0 ? brief(values) : "";
