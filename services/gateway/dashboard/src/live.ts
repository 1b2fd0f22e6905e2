/** The page's one live connection: opened for the data the page shows, reopened when that changes. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { InstanceRow, Overview, SessionRow, WorkerRow } from "./api.ts";

interface LiveEvents {
  instances: { rows: InstanceRow[]; more: boolean };
  sessions: { rows: SessionRow[]; gone: string[]; more: boolean };
  workers: { rows: WorkerRow[]; gone: string[] };
  overview: Overview;
  changed: { instanceId: string };
  resync: Record<string, never>;
}

type Kind = keyof LiveEvents;
type Handlers = { [K in Kind]?: (data: LiveEvents[K]) => void };

export const overview = signal<Overview | undefined>(undefined);
/** State of the connection to the gateway; the gateway's connection to NATS is separate. */
export const line = signal<"connecting" | "open" | "broken">("connecting");
export const busAway = computed(() => overview.value?.bus.connected === false);
/** Ticks once a second, for everything that shows an age. */
export const now = signal(Date.now());

setInterval(() => {
  now.value = Date.now();
}, 1000);

const kinds: Kind[] = ["instances", "sessions", "workers", "overview", "changed", "resync"];
const pages = new Set<{ handlers: Handlers; instance: string | undefined }>();
let source: EventSource | undefined;
let address = "";
let pending = false;

/**
 * A browser opens at most six connections to one host over all its tabs: a hidden tab closes its connection
 * after this long, so that many open pages do not starve the visible one.
 */
const hiddenForMs = 10_000;
let hiding: ReturnType<typeof setTimeout> | undefined;

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.visibilityState === "hidden") {
    hiding = setTimeout(() => {
      source?.close();
      source = undefined;
    }, hiddenForMs);
  } else if (!source) reopenAnew();
});

/** Listens while the component is mounted. `deps` as for any effect. */
export function useLive(handlers: Handlers, deps: unknown[], instance?: string): void {
  useEffect(() => {
    const page = { handlers, instance };
    pages.add(page);
    reopen();
    return () => {
      pages.delete(page);
      reopen();
    };
  }, [...deps, instance]);
}

/** Several components mount and unmount in one render: they cause one reconnect. */
function reopen(): void {
  if (pending) return;
  pending = true;
  queueMicrotask(() => {
    pending = false;
    connect();
  });
}

function connect(): void {
  if (document.visibilityState === "hidden" && !source && address !== "") return;
  const topics = new Set<Kind>(["overview"]);
  let instance: string | undefined;
  for (const page of pages) {
    for (const kind of ["instances", "sessions", "workers"] satisfies Kind[]) {
      if (page.handlers[kind]) topics.add(kind);
    }
    instance ??= page.instance;
  }
  const wanted = `/api/events?topics=${[...topics].sort().join(",")}${instance ? `&instance=${instance}` : ""}`;
  if (wanted === address && source && source.readyState !== EventSource.CLOSED) return;
  address = wanted;
  source?.close();
  source = new EventSource(wanted);
  const opened = source;
  let before: boolean | undefined;
  opened.onopen = () => {
    line.value = "open";
  };
  opened.onerror = () => {
    line.value = "broken";
    // Refused (401, 429): the browser does not retry by itself.
    if (opened.readyState === EventSource.CLOSED) setTimeout(() => opened === source && reopenAnew(), 2000);
  };
  opened.addEventListener("hello", (event) => {
    const hello = JSON.parse(event.data) as { overview?: Overview };
    if (hello.overview) overview.value = hello.overview;
    // Changes between the page's first request and now were not received: reload.
    notify("resync", {});
  });
  for (const kind of kinds) {
    opened.addEventListener(kind, (event: MessageEvent<string>) => {
      const data = JSON.parse(event.data);
      if (kind === "overview") {
        const connected = (data as Overview).bus.connected;
        if (before === false && connected) notify("resync", {});
        before = connected;
        overview.value = data as Overview;
      }
      notify(kind, data);
    });
  }
}

function reopenAnew(): void {
  address = "";
  reopen();
}

function notify<K extends Kind>(kind: K, data: LiveEvents[K]): void {
  for (const page of pages) page.handlers[kind]?.(data);
}
