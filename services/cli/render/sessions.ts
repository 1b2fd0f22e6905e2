/** Sessions as text for people. Pure. */
import type { SessionRecord } from "../../../schemas/index.ts";
import type { BlobInfo } from "../../../shared/definitions/index.ts";
import type { SessionDescription } from "../../../shared/sdk/index.ts";
import { phaseWord, shortEpoch } from "../../../shared/wording/index.ts";
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

export const blobTable = (blobs: readonly BlobInfo[], paint: Paint = plain): string =>
  table(
    blobs,
    [
      { title: "NAME", value: ({ name }) => name },
      { title: "BYTES", value: ({ bytes }) => bytes, align: "right" },
      { title: "STORED", value: ({ storedAt }) => time(storedAt) },
    ],
    paint,
  );

export function shownSession(
  { record, live, figures, explanation }: SessionDescription,
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
      ["errors", figures.errors],
      ["age", span(figures.ageMs)],
      ["last used", figures.idleMs === undefined ? undefined : `${span(figures.idleMs)} ago`],
      ["memory", figures.memory && `${megabytes(figures.memory.bytes)} MB (its ${figures.memory.of})`],
      ["loads", figures.modelLoads === undefined ? undefined : `${figures.modelLoads} models`],
      ["inits", figures.inits],
      ["rebuilds", figures.rebuilds],
      ["blobs", figures.blobs === 0 ? undefined : `${figures.blobs}, ${figures.blobBytes} bytes`],
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

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024);

export const epochOf = (epoch: number | undefined): string | undefined =>
  epoch === undefined ? undefined : shortEpoch(epoch);

const some = (values: Readonly<Record<string, unknown>>): string =>
  Object.keys(values).length > 0 ? brief(values) : "";
