/** The legend: the colour of each owner, and the meaning of the signs on a session. */
import type { Row } from "./layout.ts";

export function Legend({ owners, rows }: { owners: ReadonlyMap<string, number>; rows: readonly Row[] }) {
  const has = (kind: string) =>
    rows.some((row) => row.kind === "session" && row.marks.some((mark) => mark.kind === kind));
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
