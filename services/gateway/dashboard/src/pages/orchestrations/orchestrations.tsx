/** The list of orchestrations, page by page, kept current by live events. */
import { useState } from "preact/hooks";
import { get, type InstanceRow, mayAct } from "../../api.ts";
import { plural } from "../../format.ts";
import { useLive } from "../../live.ts";
import { Empty, Id, Loading, Problem } from "../../parts/basics.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { query, setQuery } from "../../router.ts";
import { FirstSteps } from "../overview/first-steps.tsx";
import { BulkBar } from "./bulk.tsx";
import { type Column, ColumnPicker, chosenColumns } from "./columns.tsx";
import { Filters, filterOf, fitsFilter, searchOf } from "./filters.tsx";
import type { InstanceList } from "./instance-list.ts";

export function OrchestrationsPage() {
  const filter = filterOf(query.value);
  const search = searchOf(filter);
  const cursor = query.value.get("cursor") ?? "";
  const { data, error, reload, set } = useLoad(
    (signal) =>
      get<InstanceList>(`/api/instances?${search}&limit=50${cursor ? `&cursor=${cursor}` : ""}`, signal),
    [search, cursor],
  );
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  useLive(
    {
      instances: ({ rows }) =>
        set((list) => list && merge(list, rows, (row) => fitsFilter(row, filter), cursor === "")),
      resync: reload,
    },
    [search, cursor, reload],
  );
  const columns = chosenColumns(query.value.get("columns"));
  const rows = data?.rows ?? [];
  const empty = data && data.matching === 0;
  return (
    <>
      <div class="page-head">
        <h1>Orchestrations</h1>
        <div class="actions">
          <ColumnPicker />
          <a class="button primary" href="/start">
            Start one
          </a>
        </div>
      </div>
      <Filters filter={filter} />
      {error !== undefined && <Problem error={error} />}
      {mayAct() && (
        <BulkBar
          chosen={chosen}
          open={rows.filter((row) => chosen.has(row.instanceId) && row.endedAt === undefined).length}
          matching={data?.matching ?? 0}
          search={search}
          onDone={() => setChosen(new Set())}
        />
      )}
      {!data && error === undefined && <Loading />}
      {empty && search !== "" && <Empty title="No orchestration fits these filters" />}
      {empty && search === "" && <FirstSteps />}
      {data && !empty && (
        <section class="table-wrap" aria-label="Orchestrations">
          <table class="cards">
            <thead>
              <tr>
                {mayAct() && (
                  <th scope="col" class="tick">
                    <input
                      type="checkbox"
                      aria-label="Choose all on this page"
                      checked={rows.length > 0 && rows.every((row) => chosen.has(row.instanceId))}
                      onChange={(event) =>
                        setChosen(
                          event.currentTarget.checked
                            ? new Set(rows.map((row) => row.instanceId))
                            : new Set(),
                        )
                      }
                    />
                  </th>
                )}
                <th scope="col">Id</th>
                {columns.map(({ key, title, right }) => (
                  <th key={key} scope="col" class={right ? "right" : ""}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <RowOf
                  key={row.instanceId}
                  row={row}
                  columns={columns}
                  chosen={chosen}
                  setChosen={setChosen}
                />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {data && !empty && <Pager list={data} cursor={cursor} />}
    </>
  );
}

function RowOf(props: {
  row: InstanceRow;
  columns: readonly Column[];
  chosen: ReadonlySet<string>;
  setChosen: (ids: ReadonlySet<string>) => void;
}) {
  const { row, columns, chosen, setChosen } = props;
  return (
    <tr>
      {mayAct() && (
        <td class="tick">
          <input
            type="checkbox"
            aria-label={`Choose ${row.instanceId}`}
            checked={chosen.has(row.instanceId)}
            onChange={(event) => {
              const next = new Set(chosen);
              if (event.currentTarget.checked) next.add(row.instanceId);
              else next.delete(row.instanceId);
              setChosen(next);
            }}
          />
        </td>
      )}
      <td class="title">
        <Id href={`/orchestrations/${row.instanceId}`}>{row.instanceId}</Id>
      </td>
      {columns.map(({ key, title, right, class: kind = "", cell }) => (
        <td key={key} data-label={title} class={`${kind} ${right ? "right number" : ""}`}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}

function Pager({ list, cursor }: { list: InstanceList; cursor: string }) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <span class="muted">{plural(list.matching, "orchestration")}</span>
      {cursor !== "" && (
        <button type="button" class="button small" onClick={() => setQuery({ cursor: undefined })}>
          To the latest
        </button>
      )}
      {list.cursor && (
        <button type="button" class="button small" onClick={() => setQuery({ cursor: list.cursor })}>
          Older
        </button>
      )}
    </nav>
  );
}

/**
 * Adds new rows on top of the first page, updates known ones in place, and removes rows that no longer match.
 */
export function merge(
  list: InstanceList,
  changed: InstanceRow[],
  fits: (row: InstanceRow) => boolean,
  first: boolean,
): InstanceList {
  const byId = new Map(list.rows.map((row) => [row.instanceId, row]));
  let { matching } = list;
  for (const row of changed) {
    const known = byId.has(row.instanceId);
    if (fits(row)) {
      if (known || first) byId.set(row.instanceId, row);
      if (!known && first) matching++;
    } else if (known) {
      byId.delete(row.instanceId);
      matching--;
    }
  }
  const since = (row: InstanceRow) => row.startedAt ?? row.updatedAt;
  const rows = [...byId.values()].sort(
    (a, b) => since(b) - since(a) || (a.instanceId < b.instanceId ? 1 : -1),
  );
  return { ...list, matching, rows: rows.slice(0, 50) };
}
