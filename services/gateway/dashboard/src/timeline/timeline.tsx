/** The picture of a history: time runs right, sessions on top with their owners, work below. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { absolute, duration, plural } from "../format.ts";
import type { HistoryModel, Segment, Work } from "../history/model.ts";
import { now } from "../live.ts";
import { Card } from "../parts/basics.tsx";
import { type Layout, layout, ownerColours, type Row, slices, ticks } from "./layout.ts";
import { useViewport } from "./viewport.ts";

const rowHeight = 26;
const axisHeight = 24;
const colours = 8;

interface TimelineProps {
  model: HistoryModel;
  live: boolean;
  selected: number | undefined;
  select: (id: number | undefined) => void;
}

export function Timeline({ model, live, selected, select }: TimelineProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const gutter = width < 620 ? 84 : 150;
  const plot = Math.max(width - gutter - 8, 50);
  const rows = useMemo(() => layout(model), [model]);
  const owners = useMemo(() => ownerColours(model, colours), [model]);
  const end = live ? Math.max(now.value, model.last) : Math.max(model.last, model.from + 1);
  const view = useViewport(model.from, end, plot);
  if (model.work.length + model.sessions.length + model.signals.length === 0) return null;
  const height = axisHeight + rows.rows.length * rowHeight + 4;
  return (
    <Card
      title="Timeline"
      aside={
        <div class="chips">
          <button type="button" class="button small" onClick={() => view.zoom(0.5)} aria-label="Zoom in">
            +
          </button>
          <button type="button" class="button small" onClick={() => view.zoom(2)} aria-label="Zoom out">
            −
          </button>
          <button type="button" class="button small" onClick={view.fit} disabled={view.fitted}>
            All
          </button>
        </div>
      }
    >
      <Legend owners={owners} rows={rows} />
      <div
        ref={box}
        class="timeline"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: moved and zoomed by keyboard
        tabIndex={0}
        role="application"
        aria-label={summaryOf(model)}
        onKeyDown={view.onKey}
        onWheel={view.onWheel}
        onPointerDown={view.onPointerDown}
        onClick={(event) => {
          const shape = event.target instanceof Element ? event.target.closest("[data-event]") : null;
          if (shape) select(Number(shape.getAttribute("data-event")));
        }}
      >
        {width > 0 && (
          <svg width={width} height={height} class="timeline-svg" aria-hidden="true">
            <g transform={`translate(${gutter},0)`}>
              <Axis from={view.from} to={view.to} start={model.from} width={plot} height={height} />
              {rows.rows.map((row, index) => (
                <g key={index} transform={`translate(0,${axisHeight + index * rowHeight})`}>
                  <text class="row-label" x={-8} y={rowHeight / 2 + 4} text-anchor="end">
                    {clipped(labelOf(row), gutter / 7)}
                  </text>
                  <RowShape
                    row={row}
                    view={{ from: view.from, to: view.to, width: plot, now: end }}
                    owners={owners}
                    selected={selected}
                  />
                </g>
              ))}
            </g>
          </svg>
        )}
      </div>
      {rows.hidden > 0 && (
        <p class="muted">{plural(rows.hidden, "more item")} ran beside these; the table has all of them.</p>
      )}
    </Card>
  );
}

interface View {
  from: number;
  to: number;
  width: number;
  now: number;
}

interface ShapeProps {
  row: Row;
  view: View;
  owners: ReadonlyMap<string, number>;
  selected: number | undefined;
}

const labelOf = (row: Row): string => (row.kind === "session" ? row.session.sessionId : row.label);

function RowShape(props: ShapeProps) {
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
                <title>{`signal ${signal.name}, ${absolute(signal.at)}`}</title>
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
        const label = slice.merged > 1 ? `${slice.merged} × ${work.name}` : titleOf(work, view.now);
        return (
          <g
            key={work.id}
            class={`bar ${work.kind} ${state} ${slice.width < 4 ? "thin" : ""} ${selected === work.id ? "selected" : ""}`}
            data-event={work.id}
          >
            <title>{label}</title>
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
              <text x={x + 6} y={rowHeight / 2 + 4}>
                {clipped(segmentLabel(segment), (width - (segment.to === undefined ? 10 : 24)) / 6.6)}
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
            <title>{`${mark.text}, ${absolute(mark.at)}`}</title>
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
  ((at - view.from) / Math.max(view.to - view.from, 1)) * view.width;

function segmentLabel(segment: Segment): string {
  if (segment.phase === "waiting") return "waits for a worker";
  if (segment.phase === "parked") return "parked";
  const init = segment.phase === "starting" ? " · init" : "";
  return `${segment.workerId} · epoch ${segment.epoch}${init}`;
}

const segmentTitle = (segment: Segment, end: number): string =>
  `${segmentLabel(segment)}, ${duration((segment.to ?? end) - segment.from)}, from ${absolute(segment.from)}`;

function titleOf(work: Work, end: number): string {
  const where = work.workerId ? ` by ${work.workerId}` : "";
  const failed = work.error ? ` (${work.error})` : "";
  const tries = work.attempts.length > 0 ? `, ${work.attempts.length} failed attempts` : "";
  return `#${work.id} ${work.kind} ${work.name}: ${work.state}${where}${failed}${tries}, ${duration((work.to ?? end) - work.from)}, from ${absolute(work.from)}`;
}

const clipped = (text: string, characters: number): string =>
  text.length <= characters ? text : characters < 3 ? "" : `${text.slice(0, Math.floor(characters) - 1)}…`;

function Axis(props: { from: number; to: number; start: number; width: number; height: number }) {
  const { from, to, start, width, height } = props;
  return (
    <>
      {ticks(from, to, Math.max(2, Math.floor(width / 110))).map((at) => {
        const x = ((at - from) / Math.max(to - from, 1)) * width;
        return (
          <g key={at} class="tick">
            <line x1={x} x2={x} y1={axisHeight - 4} y2={height} />
            <text x={x + 3} y={14}>
              +{duration(at - start)}
            </text>
          </g>
        );
      })}
    </>
  );
}

function Legend({ owners, rows }: { owners: ReadonlyMap<string, number>; rows: Layout }) {
  const has = (kind: string) =>
    rows.rows.some((row) => row.kind === "session" && row.marks.some((mark) => mark.kind === kind));
  if (owners.size === 0) return null;
  return (
    <ul class="legend" aria-label="Owners of sessions">
      {[...owners].map(([workerId, colour]) => (
        <li key={workerId}>
          <span class={`dot owner-${colour}`} aria-hidden="true" /> {workerId}
        </li>
      ))}
      {has("lost") && (
        <li>
          <span class="lost-sign" aria-hidden="true">
            ✕
          </span>{" "}
          lost
        </li>
      )}
      {has("reclaimed") && (
        <li>
          <span class="reclaim-sign" aria-hidden="true">
            ⚑
          </span>{" "}
          reclaimed
        </li>
      )}
    </ul>
  );
}

function summaryOf(model: HistoryModel): string {
  const failed = model.work.filter((work) => work.state === "failed").length;
  const lost = model.sessions
    .flatMap((session) => session.marks)
    .filter((mark) => mark.kind === "lost").length;
  return `Timeline of ${plural(model.work.length, "piece")} of work (${failed} failed) and ${plural(model.sessions.length, "session")} (${lost} lost). Plus and minus zoom, arrows move. The table below has the same in text.`;
}

function useWidth(box: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}
