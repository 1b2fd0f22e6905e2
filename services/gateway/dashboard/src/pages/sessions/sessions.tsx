import { phaseWord } from "../../../../../../shared/wording/index.ts";
import { get, type SessionRow } from "../../api.ts";
import { useLive } from "../../live.ts";
import { Empty, Loading, Problem } from "../../parts/basics.tsx";
import { Field } from "../../parts/dialog.tsx";
import { FilterBox, FilterChip } from "../../parts/filter-box.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { query, setQuery } from "../../router.ts";
import { Pools } from "./pools.tsx";
import { SessionTable } from "./session-table.tsx";
import { SessionTypes } from "./session-types.tsx";

const phases = ["opening", "claimed", "active", "rebuilding", "parked", "lost", "failed", "closed"] as const;

export function SessionsPage() {
  const type = query.value.get("type") ?? "";
  const phase = query.value.get("phase") ?? "";
  const worker = query.value.get("worker") ?? "";
  const key = query.value.get("key") ?? "";
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
      (worker === "" || row.workerId === worker) &&
      (key === "" || (row.metadata["holdfast-key"] ?? "").includes(key)),
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
      <SessionTypes rows={all} />
      <Pools />
      <FilterBox
        label="Filter sessions"
        set={[type, phase, worker, key].filter((value) => value !== "").length}
      >
        <fieldset class="chips">
          <legend class="hidden">State</legend>
          {phases.map((name) => (
            <FilterChip
              key={name}
              name={phaseWord(name)}
              chosen={wanted?.includes(name) ?? false}
              count={data && all.filter((row) => row.phase === name).length}
              toggle={() => toggle(name)}
            />
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
        <Field label="Key">
          <input
            type="search"
            value={key}
            placeholder="any"
            onInput={(event) => setQuery({ key: event.currentTarget.value })}
          />
        </Field>
        {worker !== "" && (
          <a class="button small clear" href="/sessions">
            Held by {worker}: show all
          </a>
        )}
      </FilterBox>
      {error !== undefined && <Problem error={error} />}
      {!data && error === undefined && <Loading />}
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
