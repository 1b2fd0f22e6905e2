/** Rows of one height, rendered only where they are visible. Ten thousand rows cost as much as forty. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  count: number;
  rowHeight: number;
  label: string;
  class?: string;
  /** Index of the row to scroll into view when it changes. */
  show?: number | undefined;
  children: (index: number) => ComponentChildren;
}

const spare = 12;

export function VirtualList({ count, rowHeight, label, show, children, ...rest }: VirtualListProps) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (show === undefined || !element) return;
    const at = show * rowHeight;
    const outside = at < element.scrollTop || at + rowHeight > element.scrollTop + element.clientHeight;
    if (outside) element.scrollTop = at - element.clientHeight / 2;
  }, [show, rowHeight]);
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare);
  const rows = [];
  for (let index = first; index < last; index++) rows.push(children(index));
  return (
    <section
      ref={box}
      class={`virtual ${rest.class ?? ""}`}
      // A short list is as high as its rows; the class bounds a long one.
      style={{ height: `${count * rowHeight + 2}px` }}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div style={{ height: `${count * rowHeight}px`, position: "relative" }}>
        <div style={{ transform: `translateY(${first * rowHeight}px)` }}>{rows}</div>
      </div>
    </section>
  );
}
