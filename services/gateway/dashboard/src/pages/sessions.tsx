import { get, mayAct, post, type SessionRow } from "../api.ts";
import { count, duration } from "../format.ts";
import { useLive } from "../live.ts";
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
  ask({
    title: `Evict session ${row.sessionId}?`,
    text: `${row.workerId} gives it up at once and its state is gone. The orchestration hears session_lost (evicted) and does what it has declared for a loss.`,
    button: "Evict it",
    danger: true,
    fields: [{ name: "reason", label: "Reason (optional)" }],
    commands: () => [{ label: "CLI", text: `holdfast sessions evict ${row.sessionId}` }],
    done: "Told its holder to give it up",
    act: ({ reason = "" }) => post(`/api/sessions/${row.sessionId}/evict`, reason ? { reason } : {}),
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
