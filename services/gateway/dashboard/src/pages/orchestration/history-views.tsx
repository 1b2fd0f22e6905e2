/** The history as a table with filters, one event in full, or everything as JSON. */
import { useMemo } from "preact/hooks";
import type { DatedEvent, HistoryPage } from "../../api.ts";
import { absolute, count, timeOfDay } from "../../format.ts";
import { describe, familyOf } from "../../history/describe.ts";
import { Card } from "../../parts/basics.tsx";
import { FilterChip } from "../../parts/filter-box.tsx";
import { BlobButton, Json } from "../../parts/json.tsx";
import { VirtualList } from "../../parts/virtual-list.tsx";
import { query, setQuery } from "../../router.ts";

const families = ["instance", "activity", "timer", "signal", "update", "child", "session", "other"];

export function HistoryViews(props: {
  instanceId: string;
  page: HistoryPage;
  selected: number | undefined;
  select: (id: number | undefined) => void;
}) {
  const { page, selected, select } = props;
  const asJson = query.value.get("view") === "json";
  const family = query.value.get("events") ?? "";
  const events = useMemo(
    () =>
      family === ""
        ? page.events
        : page.events.filter(({ event }) => groupOf(familyOf(event.kind)) === family),
    [page, family],
  );
  const at = selected === undefined ? undefined : events.findIndex(({ event }) => event.id === selected);
  const chosen = selected === undefined ? undefined : page.events.find(({ event }) => event.id === selected);
  const counts = new Map<string, number>();
  for (const { event } of page.events) {
    const group = groupOf(familyOf(event.kind));
    counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  return (
    <Card
      title={`History (${count(page.total)} events)`}
      aside={
        <div class="chips">
          {!asJson &&
            families
              .filter((name) => counts.has(name))
              .map((name) => (
                <FilterChip
                  key={name}
                  name={name}
                  chosen={family === name}
                  count={counts.get(name)}
                  toggle={() => setQuery({ events: family === name ? undefined : name }, { replace: true })}
                />
              ))}
          <button
            type="button"
            class="chip"
            aria-pressed={asJson}
            onClick={() => setQuery({ view: asJson ? undefined : "json" }, { replace: true })}
          >
            JSON
          </button>
        </div>
      }
    >
      {asJson ? (
        <Json
          value={page.events.map(({ at: when, event }) => ({ at: when, ...event }))}
          label="History as JSON"
        />
      ) : (
        <div class={`history ${chosen ? "with-detail" : ""}`}>
          <VirtualList
            class="history-list"
            label="Events"
            rowHeight={30}
            count={events.length}
            show={at === undefined || at < 0 ? undefined : at}
          >
            {(index) => {
              const dated = events[index];
              return (
                dated && <EventRow key={dated.event.id} dated={dated} selected={selected} select={select} />
              );
            }}
          </VirtualList>
          {chosen && <Detail instanceId={props.instanceId} dated={chosen} close={() => select(undefined)} />}
        </div>
      )}
    </Card>
  );
}

const groupOf = (family: string): string => (families.includes(family) ? family : "other");

function EventRow(props: {
  dated: DatedEvent;
  selected: number | undefined;
  select: (id: number | undefined) => void;
}) {
  const { at, event } = props.dated;
  const chosen = props.selected === event.id;
  return (
    <button
      type="button"
      class={`event family-${familyOf(event.kind)} ${isBad(event.kind) ? "bad-event" : ""}`}
      aria-pressed={chosen}
      onClick={() => props.select(chosen ? undefined : event.id)}
    >
      <span class="event-id number">{event.id}</span>
      <span class="event-at number" title={absolute(at)}>
        {timeOfDay(at)}
      </span>
      <span class="event-kind">{event.kind}</span>
      <span class="event-text">{describe(event)}</span>
    </button>
  );
}

const isBad = (kind: string): boolean => /failed|lost|terminated/.test(kind);

function Detail({ instanceId, dated, close }: { instanceId: string; dated: DatedEvent; close: () => void }) {
  const { at, event } = dated;
  const blobs = Object.values(event).flatMap((value) => {
    const blob = typeof value === "object" && value !== null && "blob" in value ? value.blob : undefined;
    return isBlob(blob) ? [blob] : [];
  });
  return (
    <aside class="detail" aria-label={`Event ${event.id}`}>
      <header class="card-head">
        <h3>
          #{event.id} {event.kind}
        </h3>
        <button type="button" class="button small" onClick={close}>
          Close
        </button>
      </header>
      <p class="muted">{absolute(at)}</p>
      {blobs.map((blob) => (
        <BlobButton key={blob.sha256} instanceId={instanceId} sha256={blob.sha256} size={blob.bytes} />
      ))}
      <Json value={event} label={`Event ${event.id} as JSON`} />
    </aside>
  );
}

const isBlob = (value: unknown): value is { sha256: string; bytes: number } =>
  typeof value === "object" && value !== null && "sha256" in value && "bytes" in value;
