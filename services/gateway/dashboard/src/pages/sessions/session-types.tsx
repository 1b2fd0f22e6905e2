import type { Overview, SessionRow } from "../../api.ts";
import { duration } from "../../format.ts";
import { overview } from "../../live.ts";
import { NumberCell, NumberHead } from "../../parts/table.tsx";

/**
 * One line per session type: how many sessions, and how often the expensive state was built, found warm or
 * restored.
 */
export function SessionTypes({ rows }: { rows: readonly SessionRow[] }) {
  const starts = overview.value?.sessions.starts ?? [];
  const types = [
    ...new Set([...rows.map((row) => row.type as string), ...starts.map((one) => one.type)]),
  ].sort();
  if (types.length === 0) return null;
  return (
    <section class="table-wrap" aria-label="Types of sessions">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Type</th>
            <NumberHead>Active</NumberHead>
            <NumberHead>Waiting</NumberHead>
            <NumberHead>Init (mean)</NumberHead>
            <th scope="col">Starts since this gateway began</th>
          </tr>
        </thead>
        <tbody>
          {types.map((type) => {
            const mine = rows.filter((row) => row.type === type);
            const inits = mine.flatMap((row) => row.initMs ?? []);
            const n = (...phases: string[]) => mine.filter((row) => phases.includes(row.phase)).length;
            return (
              <tr key={type}>
                <th scope="row" class="title">
                  {type}
                </th>
                <NumberCell label="Active">{n("active", "rebuilding")}</NumberCell>
                <NumberCell label="Waiting">{n("opening", "claimed")}</NumberCell>
                <NumberCell label="Init (mean)">
                  {inits.length === 0 ? "–" : duration(inits.reduce((sum, ms) => sum + ms, 0) / inits.length)}
                </NumberCell>
                <td class="wide" data-label="Starts">
                  <Temperature starts={starts.find((one) => one.type === type)} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** How many starts had to build the state anew, as a bar and in words. */
function Temperature({ starts }: { starts: Overview["sessions"]["starts"][number] | undefined }) {
  const { cold = 0, warm = 0, restored = 0 } = starts ?? {};
  const total = cold + warm + restored;
  if (total === 0) return <span class="muted">none</span>;
  const part = (name: string, n: number) =>
    n > 0 && <span class={`part part-${name}`} style={{ width: `${(n / total) * 100}%` }} />;
  return (
    <span class="temperature">
      <span class="temperature-track" aria-hidden="true">
        {part("cold", cold)}
        {part("warm", warm)}
        {part("restored", restored)}
      </span>
      <span class="number">
        {cold} cold, {warm} warm, {restored} restored
      </span>
      <span class="muted">{Math.round(((total - cold) / total) * 100)} % warm</span>
    </span>
  );
}
