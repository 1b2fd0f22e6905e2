/** The visible part of the drawn time, and how people move it: buttons, wheel with Ctrl, drag, keys. */
import { useRef, useState } from "preact/hooks";

interface Window {
  from: number;
  to: number;
}

const shortest = 5;

/** `live`: the end moves on, and so does the visible part while it follows the end. */
export function useViewport(start: number, end: number, width: number, live: boolean) {
  /** Undefined: everything is visible, and the view grows with the history. */
  const [window, setWindow] = useState<Window | undefined>();
  const [follows, setFollows] = useState(true);
  const shown = useRef<Window>({ from: start, to: end });
  // A little room on the right, so that work that ends now is seen to end.
  const whole = { from: start, to: end + (end - start) * 0.02 };
  const following = live && follows;
  shown.current =
    window && following ? { from: whole.to - (window.to - window.from), to: whole.to } : (window ?? whole);

  const move = (next: Window) => {
    const span = Math.min(Math.max(next.to - next.from, shortest), whole.to - whole.from);
    const from = Math.min(Math.max(next.from, whole.from), whole.to - span);
    const all = span >= (whole.to - whole.from) * 0.999;
    setWindow(all ? undefined : { from, to: from + span });
    // Moving away from the end stops following it; moving back to it follows it again.
    setFollows(all || from + span >= whole.to - span * 0.01);
  };
  const zoom = (factor: number, at = following ? 1 : 0.5) => {
    const { from, to } = shown.current;
    const centre = from + (to - from) * at;
    move({ from: centre - (centre - from) * factor, to: centre + (to - centre) * factor });
  };
  const pan = (share: number) => {
    const { from, to } = shown.current;
    const by = (to - from) * share;
    move({ from: from + by, to: to + by });
  };
  return {
    ...shown.current,
    whole,
    fitted: window === undefined,
    following,
    fit: () => {
      setWindow(undefined);
      setFollows(true);
    },
    follow: () => setFollows((before) => !before),
    moveTo: (place: number) => {
      const half = (shown.current.to - shown.current.from) / 2;
      move({ from: place - half, to: place + half });
    },
    zoom,
    onKey(event: KeyboardEvent) {
      const acts: Record<string, () => void> = {
        "+": () => zoom(0.5),
        "=": () => zoom(0.5),
        "-": () => zoom(2),
        "0": () => setWindow(undefined),
        ArrowLeft: () => pan(-0.2),
        ArrowRight: () => pan(0.2),
      };
      const act = acts[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    },
    onWheel(event: WheelEvent) {
      // Plain scrolling belongs to the page.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
      const gutter = box.width - width - 8;
      zoom(
        event.deltaY > 0 ? 1.25 : 0.8,
        Math.min(1, Math.max(0, (event.clientX - box.left - gutter) / width)),
      );
    },
    onPointerDown(event: PointerEvent) {
      if (event.button !== 0 || window === undefined) return;
      const began = { x: event.clientX, ...shown.current };
      const perPixel = (began.to - began.from) / width;
      const element = event.currentTarget as HTMLElement;
      const onMove = (moved: PointerEvent) => {
        const by = (began.x - moved.clientX) * perPixel;
        move({ from: began.from + by, to: began.to + by });
      };
      const onUp = () => {
        element.removeEventListener("pointermove", onMove);
        removeEventListener("pointerup", onUp);
      };
      element.addEventListener("pointermove", onMove);
      addEventListener("pointerup", onUp);
    },
  };
}
