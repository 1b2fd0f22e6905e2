/** The filters of the list of orchestrations, kept in the address. */
import { useEffect, useState } from "preact/hooks";
import { get, type InstanceRow, type Startable } from "../../api.ts";
import { overview } from "../../live.ts";
import { Field } from "../../parts/dialog.tsx";
import { FilterBox, FilterChip } from "../../parts/filter-box.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { setQuery } from "../../router.ts";

const names = ["status", "name", "prefix", "text", "session", "parent", "engine"] as const;
export type Filter = Partial<Record<(typeof names)[number], string>>;

export function filterOf(search: URLSearchParams): Filter {
  return Object.fromEntries(names.flatMap((name) => (search.get(name) ? [[name, search.get(name)]] : [])));
}

export const searchOf = (filter: Filter): string =>
  new URLSearchParams(filter as Record<string, string>).toString();

/** Same rules as the gateway's, so that rows that arrive live are added to the right page. */
export function fitsFilter(row: InstanceRow, filter: Filter): boolean {
  if (filter.status && !filter.status.split(",").includes(row.status)) return false;
  if (filter.name && row.name !== filter.name) return false;
  if (filter.prefix && !row.instanceId.startsWith(filter.prefix)) return false;
  if (filter.session && !row.sessions?.some((id) => id === filter.session)) return false;
  if (filter.parent && row.parent?.instanceId !== filter.parent) return false;
  if ((row.engine ?? false) !== wantsEngine(row, filter)) return false;
  if (!filter.text) return true;
  const text = filter.text.toLowerCase();
  return [row.instanceId, row.name, row.error?.code, row.error?.message].some((field) =>
    field?.toLowerCase().includes(text),
  );
}

const wantsEngine = (row: InstanceRow, { engine, name, session, parent }: Filter): boolean =>
  engine === "true" || (row.engine === true && Boolean(name || session || parent));

const sum = (counts: Partial<Record<string, number>> | undefined): number | undefined =>
  counts && Object.values(counts).reduce<number>((total, n = 0) => total + n, 0);

const statuses = ["running", "pending", "parked", "completed", "failed", "cancelled", "terminated"] as const;

export function Filters({ filter }: { filter: Filter }) {
  const known = useLoad(() => get<{ orchestrations: Startable[] }>("/api/orchestrations"), []);
  const chosen = filter.status?.split(",") ?? [];
  const engine = filter.engine === "true";
  const toggle = (status: string) => {
    const next = chosen.includes(status) ? chosen.filter((other) => other !== status) : [...chosen, status];
    setQuery({ status: next.join(","), cursor: undefined });
  };
  return (
    <FilterBox label="Filter orchestrations" set={Object.keys(filter).length}>
      <fieldset class="chips">
        <legend class="hidden">Status</legend>
        {statuses.map((status) => (
          <FilterChip
            key={status}
            name={status}
            chosen={chosen.includes(status)}
            count={(engine ? overview.value?.engineCounts : overview.value?.counts)?.[status]}
            toggle={() => toggle(status)}
          />
        ))}
        <FilterChip
          name="engine's own"
          title="Instances by which the engine keeps schedules, pools, keyed sessions and limits"
          chosen={engine}
          count={sum(overview.value?.engineCounts)}
          toggle={() => setQuery({ engine: engine ? "" : "true", cursor: undefined })}
        />
      </fieldset>
      <Field label="Name">
        <select
          value={filter.name ?? ""}
          onChange={(event) => setQuery({ name: event.currentTarget.value, cursor: undefined })}
        >
          <option value="">any</option>
          {(known.data?.orchestrations ?? []).map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <TextFilter label="Id begins with" name="prefix" value={filter.prefix ?? ""} />
      <TextFilter label="Text" name="text" value={filter.text ?? ""} />
      {Object.keys(filter).length > 0 && (
        <a class="button small clear" href="/orchestrations">
          Clear filters
        </a>
      )}
    </FilterBox>
  );
}

/** Applies the filter a moment after the last key, not at every key. */
function TextFilter({ label, name, value }: { label: string; name: "prefix" | "text"; value: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => setQuery({ [name]: text, cursor: undefined }, { replace: true }), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <Field label={label}>
      <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
    </Field>
  );
}
