/**
 * The filters of a list: open if there is room, folded on a phone, where the button shows how many are set.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count } from "../format.ts";

const narrowScreen = matchMedia("(max-width: 720px)");

export function FilterBox(props: { label: string; set: number; children: ComponentChildren }) {
  const [narrow, setNarrow] = useState(narrowScreen.matches);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const changed = () => setNarrow(narrowScreen.matches);
    narrowScreen.addEventListener("change", changed);
    return () => narrowScreen.removeEventListener("change", changed);
  }, []);
  return (
    <search class="filters" aria-label={props.label}>
      {narrow && (
        <button type="button" class="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          Filters{props.set > 0 ? ` (${props.set} set)` : ""}
        </button>
      )}
      {(!narrow || open) && props.children}
    </search>
  );
}

/** One choice of a filter, with the number of matches if known. */
export function FilterChip(props: {
  name: string;
  title?: string;
  chosen: boolean;
  count: number | undefined;
  toggle: () => void;
}) {
  return (
    <button
      type="button"
      class={`chip ${props.count === 0 && !props.chosen ? "none" : ""}`}
      title={props.title}
      aria-pressed={props.chosen}
      onClick={props.toggle}
    >
      {props.name} {props.count !== undefined && <span class="chip-count">{count(props.count)}</span>}
    </button>
  );
}
