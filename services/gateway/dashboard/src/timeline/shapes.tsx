/** One row of the timeline as shapes. `data-event` identifies a clicked shape. */

import type { Segment } from "../../../../../shared/timeline/index.ts";
import { shortEpoch } from "../../../../../shared/wording/index.ts";
import { absolute, duration } from "../format.ts";
import { type Row, slices } from "./layout.ts";
import type { TimeScale } from "./time-scale.ts";

export const rowHeight = 26;

interface View {
  from: number;
  to: number;
  width: number;
  now: number;
  scale: TimeScale;
}

interface ShapeProps {
  row: Row;
  view: View;
  owners: ReadonlyMap<string, number>;
  selected: number | undefined;
}

export const labelOf = (row: Row): string => (row.kind === "session" ? row.session.sessionId : row.label);

export function RowShape(props: ShapeProps) {
  const { row, view } = props;
  switch (row.kind) {
    case "session":
      return <SessionShape {...props} row={row} />;
    case "bars":
      return <BarsShape {...props} row={row} />;
    case "signals":
      return (
        <>
          {row.signals.map((signal) => {
            const x = xOf(signal.at, view);
            if (x < -5 || x > view.width + 5) return null;
            return (
              <g key={signal.id} class="signal" data-event={signal.id}>
                <path d={`M${x} 5l6 8l-6 8l-6-8z`} />
              </g>
            );
          })}
        </>
      );
  }
}

function BarsShape({ row, view, selected }: ShapeProps & { row: Extract<Row, { kind: "bars" }> }) {
  return (
    <>
      {slices(row.bars, view).map((slice) => {
        const { work } = slice.bar;
        const state = slice.failed ? "failed" : work.state;
        return (
          <g
            key={work.id}
            class={`bar ${work.kind} ${state} ${slice.width < 4 ? "thin" : ""} ${selected === work.id ? "selected" : ""}`}
            data-event={work.id}
          >
            <rect x={slice.x} y={4} width={slice.width} height={rowHeight - 8} rx={slice.width > 6 ? 3 : 0} />
            {slice.merged === 1 && slice.width > 34 && (
              <text x={slice.x + 5} y={rowHeight / 2 + 4}>
                {clipped(work.childId ?? work.name, (slice.width - 8) / 6.6)}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

function SessionShape({ row, view, owners }: ShapeProps & { row: Extract<Row, { kind: "session" }> }) {
  return (
    <>
      {row.segments.map((segment, index) => {
        const x = Math.max(0, xOf(segment.from, view));
        const right = Math.min(view.width, xOf(segment.to ?? view.now, view));
        if (right < 0 || x > view.width) return null;
        const width = Math.max(right - x, 1.5);
        const owner = segment.workerId === undefined ? "" : `owner-${owners.get(segment.workerId) ?? 0}`;
        // A flag at the bar's beginning is drawn before the name, not on it.
        const flagged = row.marks.some(({ kind, at }) => {
          const beside = xOf(at, view) - x;
          return kind === "reclaimed" && beside > -9 && beside < 12;
        });
        const indent = flagged ? 12 : 0;
        const parity = (segment.epoch ?? 0) % 2 === 0 ? "epoch-even" : "epoch-odd";
        return (
          <g
            key={index}
            class={`segment ${segment.phase} ${owner} ${parity}`}
            data-owner={segment.workerId}
            data-epoch={segment.epoch}
          >
            <title>{segmentTitle(segment, view.now)}</title>
            <rect x={x} y={3} width={width} height={rowHeight - 6} rx={width > 6 ? 3 : 0} />
            {width > 40 && (
              <text x={x + indent + 6} y={rowHeight / 2 + 4}>
                {clipped(
                  segmentLabel(segment),
                  (width - indent - (segment.to === undefined ? 10 : 24)) / 6.6,
                )}
              </text>
            )}
          </g>
        );
      })}
      {row.marks.map((mark) => {
        const x = xOf(mark.at, view);
        if (x < -6 || x > view.width + 6) return null;
        return (
          <g key={mark.id} class={`mark mark-${mark.kind.replaceAll(" ", "-")}`} data-event={mark.id}>
            {mark.kind === "lost" || mark.kind === "failed" || mark.kind === "init failed" ? (
              <path d={`M${x - 6} 7l12 12m0-12l-12 12`} />
            ) : mark.kind === "reclaimed" ? (
              <path d={`M${x} 4v18M${x} 6l8 5l-8 5`} />
            ) : (
              <circle cx={x} cy={rowHeight / 2} r={mark.kind === "closed" ? 4 : 3} />
            )}
          </g>
        );
      })}
    </>
  );
}

const xOf = (at: number, view: View): number =>
  ((view.scale.place(at) - view.from) / Math.max(view.to - view.from, 1)) * view.width;

function segmentLabel(segment: Segment): string {
  if (segment.phase === "waiting") return "waits for a worker";
  if (segment.phase === "parked") return "idle";
  const init = segment.phase === "starting" ? " · init" : "";
  return `${segment.workerId} · epoch ${segment.epoch === undefined ? "–" : shortEpoch(segment.epoch)}${init}`;
}

const segmentTitle = (segment: Segment, end: number): string =>
  `${segmentLabel(segment)}, ${duration((segment.to ?? end) - segment.from)}, from ${absolute(segment.from)}`;

export const clipped = (text: string, characters: number): string =>
  text.length <= characters ? text : characters < 3 ? "" : `${text.slice(0, Math.floor(characters) - 1)}…`;
