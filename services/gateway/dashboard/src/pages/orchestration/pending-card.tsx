/** What the orchestration waits for, and why it is still waiting. */
import { useMemo } from "preact/hooks";
import { foldTimeline } from "../../../../../../shared/timeline/index.ts";
import {
  get,
  type HistoryPage,
  type MessageNames,
  mayAct,
  type SessionRow,
  type WorkerRow,
} from "../../api.ts";
import { plural } from "../../format.ts";
import { pendingWork } from "../../history/pending.ts";
import { now, overview, useLive } from "../../live.ts";
import { Card, Prose, When } from "../../parts/basics.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { queryIt, signalIt, updateIt } from "./instance-actions.tsx";

export function PendingWork(props: {
  instanceId: string;
  page: HistoryPage;
  select: (id: number | undefined) => void;
}) {
  const sessions = useLoad(
    () => get<{ rows: SessionRow[] }>(`/api/sessions?instance=${props.instanceId}`),
    [props.instanceId],
  );
  const workers = useLoad(() => get<{ rows: WorkerRow[] }>("/api/workers"), []);
  useLive({ sessions: sessions.reload, workers: workers.reload }, [sessions.reload, workers.reload]);
  const model = useMemo(() => foldTimeline(props.page.events), [props.page]);
  const pending = pendingWork({
    model,
    sessions: sessions.data?.rows,
    workers: workers.data?.rows,
    troubles: overview.value?.troubles,
    now: now.value,
  });
  const shown = pending.slice(0, 20);
  return (
    <Card title={`Pending (${pending.length})`}>
      {pending.length === 0 ? (
        <p class="muted">
          No step is open: the orchestration waits for a signal or an update, or its next turn is about to
          run. <em>Signal…</em> and <em>Update…</em> above send one.
        </p>
      ) : (
        <ul class="pending">
          {shown.map((item) => (
            <li key={`${item.id}-${item.what}`} class={item.troubled ? "troubled" : ""}>
              <span class="pending-what">
                {item.id > 0 ? (
                  <button type="button" class="link" onClick={() => props.select(item.id)}>
                    {item.what}
                  </button>
                ) : (
                  item.what
                )}
              </span>
              <span>{item.why}</span>
              {item.link && <a href={item.link}>Show</a>}
              {item.remedy && (
                <span class="remedy">
                  <Prose text={item.remedy} />
                </span>
              )}
              <span class="muted">
                asked <When at={item.since} />
              </span>
            </li>
          ))}
          {pending.length > shown.length && (
            <li class="muted">and {plural(pending.length - shown.length, "more item")}</li>
          )}
        </ul>
      )}
      {(overview.value?.services.orchestrators ?? 0) > 0 && (
        <Takes instanceId={props.instanceId} asOf={pending.length === 0 ? props.page.total : 0} />
      )}
    </Card>
  );
}

/**
 * The names of what can be sent to the instance now; one click opens the dialog. Asked for again when the instance begins
 * to wait for messages alone (`asOf`): while steps are open, every turn would ask its owner.
 */
function Takes({ instanceId, asOf }: { instanceId: string; asOf: number }) {
  const names = useLoad(
    (signal) => get<MessageNames>(`/api/instances/${instanceId}/messages`, signal),
    [instanceId, asOf],
  );
  if (!names.data) return null;
  const { signals, updates, queries } = names.data;
  const offered = [
    ...(mayAct() ? signals.map((name) => ({ kind: "signal", name, open: signalIt })) : []),
    ...(mayAct() ? updates.map((name) => ({ kind: "update", name, open: updateIt })) : []),
    ...queries.map((name) => ({ kind: "query", name, open: queryIt })),
  ];
  if (offered.length === 0) return null;
  return (
    <fieldset class="chips takes">
      <legend class="hidden">Messages it takes now</legend>
      <span class="muted">It takes</span>
      {offered.map(({ kind, name, open }) => (
        <button key={`${kind} ${name}`} type="button" class="chip" onClick={() => open(instanceId, name)}>
          {kind} {name}
        </button>
      ))}
    </fieldset>
  );
}
