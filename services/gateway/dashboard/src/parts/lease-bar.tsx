/**
 * The age of a lease as a bar that empties until the holder renews it. Drawn every frame, not every second.
 */
import { useEffect, useRef } from "preact/hooks";
import type { SessionRow } from "../api.ts";

export function LeaseBar({ lease }: { lease: SessionRow["lease"] }) {
  const fill = useRef<HTMLSpanElement>(null);
  const text = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!lease) return;
    let frame = 0;
    const draw = () => {
      const left = lease.ttlMs - (Date.now() - lease.renewedAt);
      const share = Math.min(1, Math.max(0, left / lease.ttlMs));
      if (fill.current) {
        fill.current.style.width = `${share * 100}%`;
        fill.current.className = `meter-fill ${share < 0.34 ? "full" : ""}`;
      }
      if (text.current) text.current.textContent = left > 0 ? `${(left / 1000).toFixed(1)} s` : "expired";
      frame = requestAnimationFrame(draw);
    };
    draw();
    return () => cancelAnimationFrame(frame);
  }, [lease?.renewedAt, lease?.ttlMs]);
  if (!lease) return <span class="muted">no lease</span>;
  return (
    <span
      class="meter lease"
      title={`Lease of ${lease.ttlMs / 1000} s, held by ${lease.holder}`}
      data-renewed={lease.renewedAt}
    >
      <span class="meter-track" aria-hidden="true">
        <span ref={fill} class="meter-fill" />
      </span>
      <span ref={text} class="number" />
    </span>
  );
}
