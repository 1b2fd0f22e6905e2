/**
 * The columns of the list of orchestrations, kept in the address like its filters. The id is always the
 * first.
 */
import type { ComponentChildren } from "preact";
import type { InstanceRow } from "../../api.ts";
import { count } from "../../format.ts";
import { Badge, Id, Took, When } from "../../parts/basics.tsx";
import { query, setQuery } from "../../router.ts";

export interface Column {
  key: string;
  title: string;
  /** True for numbers, which are aligned right. */
  right?: boolean;
  /** Hidden until the user selects it. */
  extra?: boolean;
  class?: string;
  cell: (row: InstanceRow) => ComponentChildren;
}

const none = <span class="muted">–</span>;

const allColumns: readonly Column[] = [
  { key: "name", title: "Name", cell: (row) => row.name ?? none },
  { key: "status", title: "Status", cell: (row) => <Badge status={row.status} /> },
  { key: "started", title: "Started", cell: (row) => <When at={row.startedAt ?? row.updatedAt} /> },
  { key: "ended", title: "Ended", extra: true, cell: (row) => <When at={row.endedAt} /> },
  { key: "updated", title: "Last change", extra: true, cell: (row) => <When at={row.updatedAt} /> },
  {
    key: "took",
    title: "Took",
    right: true,
    cell: (row) => <Took from={row.startedAt} to={row.endedAt} />,
  },
  // A summary is not written at every turn: of what runs, its own page has the number.
  {
    key: "events",
    title: "Events",
    right: true,
    cell: (row) => (row.endedAt === undefined ? none : count(row.events)),
  },
  { key: "execution", title: "Execution", right: true, extra: true, cell: (row) => row.execution },
  {
    key: "parent",
    title: "Parent",
    extra: true,
    cell: ({ parent }) =>
      parent ? <Id href={`/orchestrations/${parent.instanceId}`}>{parent.instanceId}</Id> : none,
  },
  {
    key: "sessions",
    title: "Sessions",
    extra: true,
    cell: ({ sessions = [] }) =>
      sessions.length === 0
        ? none
        : sessions.map((id) => (
            <Id key={id} href={`/sessions/${id}`}>
              {id}
            </Id>
          )),
  },
  { key: "note", title: "Note", class: "note", cell: noteOf },
];

const usual = allColumns.filter((column) => !column.extra).map(({ key }) => key);

/** Returns the chosen columns in the table's order, not in that of the address. */
export function chosenColumns(wanted: string | null): Column[] {
  const keys = wanted === null ? usual : wanted.split(",");
  return allColumns.filter(({ key }) => keys.includes(key));
}

export function ColumnPicker() {
  const shown = chosenColumns(query.value.get("columns")).map(({ key }) => key);
  const toggle = (key: string) => {
    const next = allColumns
      .map((column) => column.key)
      .filter((one) => shown.includes(one) !== (one === key));
    setQuery({ columns: next.join() === usual.join() ? undefined : next.join(",") || "none" });
  };
  return (
    <details class="picker">
      <summary class="button small">Columns</summary>
      <fieldset>
        <legend class="hidden">Columns of the list</legend>
        {allColumns.map(({ key, title }) => (
          <label key={key}>
            <input type="checkbox" checked={shown.includes(key)} onChange={() => toggle(key)} /> {title}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function noteOf(row: InstanceRow): ComponentChildren {
  if (row.error) {
    return (
      <span class="bad" title={row.error.message}>
        {row.error.code}: {row.error.message}
      </span>
    );
  }
  if (row.status === "pending" && row.name === undefined)
    return <span class="muted">not started yet: its messages wait for it</span>;
  return row.execution > 1 ? <span class="muted">execution {row.execution}</span> : null;
}
