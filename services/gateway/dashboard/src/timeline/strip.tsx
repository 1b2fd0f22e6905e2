/**
 * The whole of a long history in one strip, with the visible part marked; drag it or click beside it to move.
 */
import { useMemo } from "preact/hooks";
import type { InstanceTimeline } from "../../../../../shared/timeline/index.ts";
import { density } from "./density.ts";
import type { TimeScale } from "./time-scale.ts";

const height = 30;
const columnPixels = 3;

export function Strip(props: {
  model: InstanceTimeline;
  scale: TimeScale;
  whole: { from: number; to: number };
  view: { from: number; to: number };
  width: number;
  gutter: number;
  /** Moves the middle of the visible part. */
  moveTo: (place: number) => void;
}) {
  const { model, scale, whole, view, width, gutter } = props;
  const columns = useMemo(
    () => density(model, scale, whole, Math.max(1, Math.floor(width / columnPixels))),
    [model, scale, whole.from, whole.to, width],
  );
  const most = Math.max(1, ...columns.map(({ running }) => running));
  const xOf = (place: number) => ((place - whole.from) / Math.max(whole.to - whole.from, 1)) * width;
  const from = Math.max(0, xOf(view.from));
  const point = (event: PointerEvent, element: Element) => {
    const x = event.clientX - element.getBoundingClientRect().left - gutter;
    props.moveTo(whole.from + (x / width) * (whole.to - whole.from));
  };
  return (
    <svg
      class="strip"
      width={width + gutter + 8}
      height={height}
      aria-hidden="true"
      onPointerDown={(event) => {
        const element = event.currentTarget;
        element.setPointerCapture(event.pointerId);
        point(event, element);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) point(event, event.currentTarget);
      }}
    >
      <text class="row-label" x={gutter - 8} y={height / 2 + 4} text-anchor="end">
        all of it
      </text>
      <g transform={`translate(${gutter},0)`}>
        {columns.map(({ running, failed }, index) =>
          running === 0 ? null : (
            <rect
              key={index}
              class={failed ? "failed" : ""}
              x={index * columnPixels}
              width={columnPixels}
              y={height - 3 - Math.max(3, (running / most) * (height - 8))}
              height={Math.max(3, (running / most) * (height - 8))}
            />
          ),
        )}
        <rect
          class="strip-window"
          x={from}
          y={1}
          width={Math.max(4, Math.min(width, xOf(view.to)) - from)}
          height={height - 2}
          rx={3}
        />
      </g>
    </svg>
  );
}
