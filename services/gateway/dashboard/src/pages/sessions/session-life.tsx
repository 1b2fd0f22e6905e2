/**
 * The life of one session, from the history of the orchestration that opened it: owners, calls, errors,
 * streams.
 */
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { foldTimeline, type InstanceTimeline, type Work } from "../../../../../../shared/timeline/index.ts";
import { failureText, shortEpoch } from "../../../../../../shared/wording/index.ts";
import { duration, plural } from "../../format.ts";
import { lifeOf } from "../../history/session-life.ts";
import { useLive } from "../../live.ts";
import { Badge, Card, Id, When } from "../../parts/basics.tsx";
import { NumberCell, NumberHead } from "../../parts/table.tsx";
import { Timeline } from "../../timeline/timeline.tsx";
import { StreamPanel } from "../orchestration/stream-panel.tsx";
import { useHistory } from "../orchestration/use-history.ts";

const mostCalls = 20;

/**
 * `over`: nothing more comes. `children`: shown between the picture and the calls, and alone while there is no
 * history, or none of this session in the latest execution.
 */
export function SessionLife(props: {
  instanceId: string;
  sessionId: string;
  over: boolean;
  children?: ComponentChildren;
}) {
  const { instanceId, sessionId, over, children } = props;
  const history = useHistory(instanceId, undefined);
  useLive(
    { changed: () => void history.more(), resync: () => void history.more() },
    [instanceId, history.more],
    instanceId,
  );
  const model = useMemo(
    () => history.page && lifeOf(foldTimeline(history.page.events), sessionId),
    [history.page, sessionId],
  );
  const [selected, select] = useState<number | undefined>();
  if (!model || model.sessions.length === 0) return <>{children}</>;
  const live = !over && !model.ended;
  return (
    <>
      <Timeline model={model} live={live} selected={selected} select={select} />
      {children}
      <Calls model={model} />
      <StreamPanel instanceId={instanceId} of={model.work.map(({ id }) => id)} />
    </>
  );
}

function Calls({ model }: { model: InstanceTimeline }) {
  const failed = model.work.filter((work) => work.state === "failed");
  const [onlyFailed, setOnlyFailed] = useState(false);
  const calls = (onlyFailed ? failed : model.work).slice(-mostCalls).reverse();
  if (model.work.length === 0) return null;
  return (
    <Card
      title={`Calls (${model.work.length})`}
      aside={
        <button
          type="button"
          class="chip"
          aria-pressed={onlyFailed}
          disabled={failed.length === 0}
          onClick={() => setOnlyFailed(!onlyFailed)}
        >
          failed <span class="chip-count">{failed.length}</span>
        </button>
      }
    >
      <div class="table-wrap">
        <table class="cards dense">
          <thead>
            <tr>
              <th scope="col">Call</th>
              <th scope="col">State</th>
              <th scope="col">Worker</th>
              <NumberHead>Epoch</NumberHead>
              <th scope="col">Asked</th>
              <NumberHead>Took</NumberHead>
              <th scope="col">Note</th>
            </tr>
          </thead>
          <tbody>
            {calls.map((work) => (
              <CallRow key={work.id} work={work} end={model.last} />
            ))}
          </tbody>
        </table>
      </div>
      {model.work.length > calls.length && (
        <p class="muted">The latest {calls.length}; the history of its orchestration has all of them.</p>
      )}
    </Card>
  );
}

function CallRow({ work, end }: { work: Work; end: number }) {
  const again = work.attempts.length > 0 ? plural(work.attempts.length, "failed attempt") : "";
  return (
    <tr>
      <td class="title">
        <span class="muted">#{work.id}</span> {work.name}
      </td>
      <td data-label="State">
        <Badge status={work.state === "open" ? "running" : work.state} />
      </td>
      <td data-label="Worker">{work.workerId ? <Id>{work.workerId}</Id> : <span class="muted">–</span>}</td>
      <NumberCell label="Epoch">{work.epoch === undefined ? "–" : shortEpoch(work.epoch)}</NumberCell>
      <td data-label="Asked">
        <When at={work.from} />
      </td>
      <NumberCell label="Took">{duration((work.to ?? end) - work.from)}</NumberCell>
      <td class="note" data-label="Note">
        {work.failure ? <span class="bad">{failureText(work.failure)}</span> : again}
      </td>
    </tr>
  );
}
