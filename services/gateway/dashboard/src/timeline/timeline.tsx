/** The picture of a history: time runs right, sessions on top with their owners, work below. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration, plural } from "../format.ts";
import type { HistoryModel } from "../history/model.ts";
import { now } from "../live.ts";
import { Card } from "../parts/basics.tsx";
import { type Layout, layout, ownerColours, ticks } from "./layout.ts";
import { clipped, labelOf, RowShape, rowHeight } from "./shapes.tsx";
import { useViewport } from "./viewport.ts";

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

function Axis(props: { from: number; to: number; start: number; width: number; height: number }) {
  const { from, to, start, width, height } = props;
  return (
    <>
      {ticks(from, to, Math.max(2, Math.floor(width / 110))).map((at) => {
        const x = ((at - from) / Math.max(to - from, 1)) * width;
        // A label that would be cut off at the edge is left out; its line stays.
        const fits = x < width - 44;
        return (
          <g key={at} class="tick">
            <line x1={x} x2={x} y1={axisHeight - 4} y2={height} />
            {fits && (
              <text x={x + 3} y={14}>
                +{duration(at - start)}
              </text>
            )}
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
