/** The picture of a history: time runs to the right, sessions with their owners on top, work below. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";
import { duration, plural } from "../format.ts";
import { now } from "../live.ts";
import { Card } from "../parts/basics.tsx";
import { detailsOf, HoverCard, SelectedEvent } from "./event-details.tsx";
import { withInside } from "./inside-rows.ts";
import { layout, ownerColours, ticks } from "./layout.ts";
import { Legend } from "./legend.tsx";
import { clipped, labelOf, RowShape, rowHeight } from "./shapes.tsx";
import { Strip } from "./strip.tsx";
import { idleScale, type TimeScale, trueScale } from "./time-scale.ts";
import { useInside } from "./use-inside.ts";
import { useViewport } from "./viewport.ts";

const axisHeight = 24;
const colours = 8;
/** From this many pieces of work on, a strip shows the whole as well. */
const manyPieces = 150;

interface TimelineProps {
  model: InstanceTimeline;
  live: boolean;
  selected: number | undefined;
  select: (id: number | undefined) => void;
}

interface Hovered {
  id: number;
  /** The child that the event belongs to; undefined for the orchestration itself. */
  of: string | undefined;
  x: number;
  y: number;
}

export function Timeline({ model, live, selected, select }: TimelineProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const gutter = width < 620 ? 84 : 150;
  const plot = Math.max(width - gutter - 8, 50);
  const inside = useInside(model);
  const packed = useMemo(() => layout(model), [model]);
  const rows = useMemo(() => withInside(packed.rows, inside.shown), [packed, inside.shown]);
  const owners = useMemo(() => ownerColours(model, colours), [model]);
  const end = live ? Math.max(now.value, model.last) : Math.max(model.last, model.from + 1);
  const compressed = useMemo(() => idleScale(model, end), [model, end]);
  const [toScale, setToScale] = useState(false);
  const scale = toScale ? trueScale : compressed;
  const view = useViewport(scale.place(model.from), scale.place(end), plot, live);
  const [hovered, setHovered] = useState<Hovered | undefined>();
  if (model.work.length + model.sessions.length + model.received.length === 0) return null;

  const modelOf = (of: string | undefined) => (of === undefined ? model : inside.shown.get(of));
  const under = hovered && modelOf(hovered.of);
  const hover = under && detailsOf(under, hovered.id, end);
  const chosen = selected === undefined ? undefined : detailsOf(model, selected, end);
  const childId = chosen?.work?.childId;
  const height = axisHeight + rows.length * rowHeight + 4;
  const shapeAt = (target: EventTarget | null) => {
    const shape = target instanceof Element ? target.closest("[data-event]") : null;
    if (!shape) return undefined;
    const of = shape.closest("[data-of]")?.getAttribute("data-of") ?? undefined;
    return { id: Number(shape.getAttribute("data-event")), of };
  };
  return (
    <Card
      title="Timeline"
      aside={
        <div class="chips">
          {compressed.gaps.length > 0 && (
            <button
              type="button"
              class="button small"
              aria-pressed={!toScale}
              title="Draw stretches in which nothing runs short"
              onClick={() => setToScale(!toScale)}
            >
              Idle time short
            </button>
          )}
          {live && (
            <button type="button" class="button small" aria-pressed={view.following} onClick={view.follow}>
              Follow
            </button>
          )}
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
      <div class="timeline-frame">
        {(!view.fitted || model.work.length > manyPieces) && width > 0 && (
          <Strip {...{ model, scale, whole: view.whole, view, width: plot, gutter }} moveTo={view.moveTo} />
        )}
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
          onPointerMove={(event) => {
            const shape = shapeAt(event.target);
            const frame = event.currentTarget.parentElement?.getBoundingClientRect();
            if (!shape || !frame) return setHovered(undefined);
            setHovered({ ...shape, x: event.clientX - frame.left, y: event.clientY - frame.top });
          }}
          onPointerLeave={() => setHovered(undefined)}
          onClick={(event) => {
            const shape = shapeAt(event.target);
            if (shape && shape.of === undefined) select(shape.id);
          }}
        >
          {width > 0 && (
            <svg width={width} height={height} class="timeline-svg" aria-hidden="true">
              <g transform={`translate(${gutter},0)`}>
                <Axis {...{ view, scale, start: model.from, width: plot, height }} />
                {rows.map((row, index) => (
                  <g
                    key={index}
                    transform={`translate(0,${axisHeight + index * rowHeight})`}
                    data-of={row.of}
                    class={row.of === undefined ? undefined : "inside"}
                  >
                    <text class="row-label" x={-8} y={rowHeight / 2 + 4} text-anchor="end">
                      {clipped(row.of === undefined ? labelOf(row) : `↳ ${labelOf(row)}`, (gutter - 12) / 7)}
                    </text>
                    <RowShape
                      row={row}
                      view={{ from: view.from, to: view.to, width: plot, now: end, scale }}
                      owners={owners}
                      selected={row.of === undefined ? selected : undefined}
                    />
                  </g>
                ))}
              </g>
            </svg>
          )}
        </div>
        {hover && hovered && (
          <HoverCard
            details={hover}
            x={Math.min(hovered.x + 14, Math.max(0, width - 300))}
            y={hovered.y + 16}
          />
        )}
      </div>
      {packed.hidden > 0 && (
        <p class="muted">{plural(packed.hidden, "more item")} ran beside these; the table has all of them.</p>
      )}
      {chosen && selected !== undefined && (
        <SelectedEvent
          details={chosen}
          id={selected}
          inside={
            childId === undefined
              ? undefined
              : { shown: inside.shown.has(childId), toggle: () => inside.toggle(childId) }
          }
          close={() => select(undefined)}
        />
      )}
    </Card>
  );
}

interface AxisProps {
  view: { from: number; to: number };
  scale: TimeScale;
  start: number;
  width: number;
  height: number;
}

function Axis({ view: { from, to }, scale, start, width, height }: AxisProps) {
  const xOf = (place: number) => ((place - from) / Math.max(to - from, 1)) * width;
  const breaks = scale.gaps.map((gap) => ({
    gap,
    x: xOf(scale.place(gap.from)),
    width: (gap.shown / Math.max(to - from, 1)) * width,
  }));
  return (
    <>
      {breaks.map(({ gap, x, width: wide }) =>
        x > width || x + wide < 0 ? null : (
          <g key={gap.from} class="idle-gap">
            <rect
              x={Math.max(0, x)}
              y={axisHeight - 4}
              width={Math.min(width, x + wide) - Math.max(0, x)}
              height={height}
            />
            {wide > 46 && (
              <text x={x + wide / 2} y={14} text-anchor="middle">
                idle {duration(gap.to - gap.from)}
              </text>
            )}
          </g>
        ),
      )}
      {ticks(from, to, Math.max(2, Math.floor(width / 110))).map((place) => {
        const x = xOf(place);
        // A label that would be cut off at the edge, or would cover that of an idle stretch, is left out; its
        // line stays.
        const onBreak = breaks.some((one) => x > one.x - 60 && x < one.x + one.width);
        return (
          <g key={place} class="tick">
            <line x1={x} x2={x} y1={axisHeight - 4} y2={height} />
            {x < width - 44 && !onBreak && (
              <text x={x + 3} y={14}>
                +{duration(scale.time(place) - start)}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

function summaryOf(model: InstanceTimeline): string {
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
