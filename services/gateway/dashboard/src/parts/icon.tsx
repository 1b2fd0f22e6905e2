/**
 * Line icons on a grid of 24, drawn for Holdfast: none is loaded from elsewhere. An icon always accompanies a
 * word, so screen readers skip it.
 */
const paths = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM14 4v4h6V4zM4 17v3h6v-3z",
  orchestrations: "M5 6h4v4H5zM15 14h4v4h-4zM9 8h4a3 3 0 0 1 3 3v3",
  sessions: "M12 5a2 2 0 1 0 0 4a2 2 0 0 0 0-4zM12 9v11M5 13a7 7 0 0 0 14 0M9 12h6",
  workers: "M5 5h14v6H5zM5 13h14v6H5zM8 8h.01M8 16h.01M12 8h4M12 16h4",
  queues: "M4 6h16M4 12h16M4 18h10",
  schedules: "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16zM12 8v4l3 2",
  limits: "M5 17a7 7 0 1 1 14 0M12 17l4-5M5 17h14",
  start: "M8 5l11 7l-11 7z",
  import: "M12 4v10M8 10l4 4l4-4M5 18v2h14v-2",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
  light:
    "M12 8a4 4 0 1 0 0 8a4 4 0 0 0 0-8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6L7 7M17 17l1.4 1.4M18.4 5.6L17 7M7 17l-1.4 1.4",
  dark: "M19 14.5A7.5 7.5 0 0 1 9.5 5A7.5 7.5 0 1 0 19 14.5z",
  good: "M5 12.5l4.5 4.5L19 7.5",
} as const;

type IconName = keyof typeof paths;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
