import { get, mayAct, post, type SessionRow } from "../api.ts";
import { count, duration } from "../format.ts";
import { overview, useLive } from "../live.ts";
import { Badge, Empty, Id, Problem, When } from "../parts/basics.tsx";
import { ask, Field } from "../parts/dialog.tsx";
import { LeaseBar } from "../parts/lease-bar.tsx";
import { useLoad } from "../parts/use-load.ts";
import { query, setQuery } from "../router.ts";

const phases = ["opening", "claimed", "active", "rebuilding", "parked", "lost", "failed", "closed"];

export function SessionsPage() {
  const type = query.value.get("type") ?? "";
  const phase = query.value.get("phase") ?? "";
  const worker = query.value.get("worker") ?? "";
  const { data, error, reload, set } = useLoad(
    (signal) => get<{ rows: SessionRow[] }>("/api/sessions?limit=2000", signal),
    [],
  );
  useLive(
    {
      sessions: ({ rows, gone, more }) => {
        if (more) reload();
        set((list) => list && { rows: merged(list.rows, rows, gone) });
      },
      resync: reload,
    },
    [reload],
  );
  const all = data?.rows ?? [];
  const wanted = phase === "" ? undefined : phase.split(",");
  const rows = all.filter(
    (row) =>
      (type === "" || row.type === type) &&
      (wanted ? wanted.includes(row.phase) : row.phase !== "closed") &&
      (worker === "" || row.workerId === worker),
  );
  const types = [...new Set(all.map((row) => row.type as string))].sort();
  const toggle = (name: string) => {
    const next = wanted?.includes(name)
      ? wanted.filter((other) => other !== name)
      : [...(wanted ?? []), name];
    setQuery({ phase: next.join(",") });
  };
  return (
    <>
      <h1>Sessions</h1>
      <Types rows={all} />
      <search class="filters" aria-label="Filter sessions">
        <fieldset class="chips">
          <legend class="hidden">State</legend>
          {phases.map((name) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={wanted?.includes(name) ?? false}
              onClick={() => toggle(name)}
            >
              {name}
            </button>
          ))}
        </fieldset>
        <Field label="Type">
          <select value={type} onChange={(event) => setQuery({ type: event.currentTarget.value })}>
            <option value="">any</option>
            {types.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </Field>
        {worker !== "" && (
          <a class="button small clear" href="/sessions">
            Held by {worker}: show all
          </a>
        )}
      </search>
      {error !== undefined && <Problem error={error} />}
      {data && rows.length === 0 && (
        <Empty title={all.length === 0 ? "No session is open" : "No session fits these filters"}>
          <p class="muted">
            A session is opened by an orchestration with <code>ctx.openSession(type)</code>; closed ones are
            shown with the filter “closed”.
          </p>
        </Empty>
      )}
      {rows.length > 0 && <SessionTable rows={rows} />}
    </>
  );
}

/** One line a type: how many, and how often the expensive state was built, found warm or restored. */
function Types({ rows }: { rows: readonly SessionRow[] }) {
  const starts = overview.value?.sessions.starts ?? [];
  const types = [
    ...new Set([...rows.map((row) => row.type as string), ...starts.map((one) => one.type)]),
  ].sort();
  if (types.length === 0) return null;
  return (
    <div class="table-wrap">
      <table>
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col" class="right">
              Active
            </th>
            <th scope="col" class="right">
              Waiting
            </th>
            <th scope="col" class="right">
              Init (mean)
            </th>
            <th scope="col" class="right">
              Cold
            </th>
            <th scope="col" class="right">
              Warm
            </th>
            <th scope="col" class="right">
              Restored
            </th>
          </tr>
        </thead>
        <tbody>
          {types.map((type) => {
            const mine = rows.filter((row) => row.type === type);
            const inits = mine.flatMap((row) => row.initMs ?? []);
            const began = starts.find((one) => one.type === type);
            const n = (...phases: string[]) => mine.filter((row) => phases.includes(row.phase)).length;
            return (
              <tr key={type}>
                <th scope="row">{type}</th>
                <td class="right number">{n("active", "rebuilding")}</td>
                <td class="right number">{n("opening", "claimed")}</td>
                <td class="right number">
                  {inits.length === 0 ? "–" : duration(inits.reduce((sum, ms) => sum + ms, 0) / inits.length)}
                </td>
                <td class="right number">{began?.cold ?? "–"}</td>
                <td class="right number">{began?.warm ?? "–"}</td>
                <td class="right number">{began?.restored ?? "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function SessionTable({ rows }: { rows: SessionRow[] }) {
  return (
    <section class="table-wrap" aria-label="Sessions">
      <table>
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">State</th>
            <th scope="col">Holder</th>
            <th scope="col" class="right">
              Epoch
            </th>
            <th scope="col">Lease</th>
            <th scope="col" class="right">
              Calls
            </th>
            <th scope="col" class="right">
              Waiting
            </th>
            <th scope="col" class="right">
              Init
            </th>
            <th scope="col">Opened</th>
            {mayAct() && (
              <th scope="col">
                <span class="hidden">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.sessionId}>
              <td>
                <Id href={`/sessions/${row.sessionId}`}>{row.sessionId}</Id>
                <div class="muted under">{row.type}</div>
              </td>
              <td>
                <Badge status={row.phase} />
              </td>
              <td>
                {row.workerId ? (
                  <Id href={`/workers/${row.workerId}`}>{row.workerId}</Id>
                ) : (
                  <span class="muted">nobody</span>
                )}
              </td>
              <td class="right number">{row.epoch ?? "–"}</td>
              <td>
                <LeaseBar lease={row.lease} />
              </td>
              <td class="right number">{row.work ? count(row.work.calls) : "–"}</td>
              <td class="right number">{row.work ? row.work.queued + row.work.running : "–"}</td>
              <td class="right number">{row.initMs === undefined ? "–" : duration(row.initMs)}</td>
              <td>
                <When at={row.openedAt} />
              </td>
              {mayAct() && (
                <td class="right">
                  {isHeld(row) && (
                    <button type="button" class="button small" onClick={() => evict(row)}>
                      Evict…
                    </button>
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export const isHeld = (row: SessionRow): boolean =>
  row.workerId !== undefined && ["claimed", "active", "rebuilding"].includes(row.phase);

export function evict(row: SessionRow): void {
  giveUp(
    row,
    "evict",
    `${row.workerId} gives it up at once and its state is gone. The orchestration hears session_lost (evicted) and does what it has declared for a loss.`,
  );
}

export function drain(row: SessionRow): void {
  giveUp(
    row,
    "drain",
    `${row.workerId} finishes what runs, saves the state where the type can, and hands the session to another worker.`,
  );
}

function giveUp(row: SessionRow, verb: "evict" | "drain", text: string): void {
  const name = verb === "evict" ? "Evict" : "Drain";
  ask({
    title: `${name} session ${row.sessionId}?`,
    text,
    button: `${name} it`,
    danger: verb === "evict",
    fields: [{ name: "reason", label: "Reason (optional)" }],
    commands: () => [{ label: "CLI", text: `holdfast sessions ${verb} ${row.sessionId}` }],
    done: "Told its holder to give it up",
    act: ({ reason = "" }) => post(`/api/sessions/${row.sessionId}/${verb}`, reason ? { reason } : {}),
  });
}

export function merged(
  rows: readonly SessionRow[],
  changed: readonly SessionRow[],
  gone: readonly string[],
): SessionRow[] {
  const byId = new Map(rows.map((row) => [row.sessionId as string, row]));
  for (const row of changed) byId.set(row.sessionId, row);
  for (const id of gone) byId.delete(id);
  return [...byId.values()].sort((a, b) => b.openedAt - a.openedAt);
}
