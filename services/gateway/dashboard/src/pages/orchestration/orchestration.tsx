/** One orchestration: its state, what it waits for, its timeline and its history. */
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { unparking } from "../../../../../../shared/errors/unparking.ts";
import { foldTimeline } from "../../../../../../shared/timeline/index.ts";
import { get, type HistoryPage, type InstanceView, me } from "../../api.ts";
import { failedStep } from "../../history/failed-step.ts";
import { useLive } from "../../live.ts";
import {
  Badge,
  Card,
  Command,
  Facts,
  Id,
  Loading,
  PageHead,
  Problem,
  Prose,
  Took,
  When,
} from "../../parts/basics.tsx";
import { Json } from "../../parts/json.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { query, setQuery } from "../../router.ts";
import { Timeline } from "../../timeline/timeline.tsx";
import { FailedStep, Stack } from "./failed-step.tsx";
import { HistoryViews } from "./history-views.tsx";
import { InstanceActions } from "./instance-actions.tsx";
import { PendingWork } from "./pending-card.tsx";
import { StreamPanel } from "./stream-panel.tsx";
import { useHistory } from "./use-history.ts";

const terminal = ["completed", "failed", "cancelled", "terminated"];

export function OrchestrationPage({ id }: { id: string }) {
  const instance = useLoad((signal) => get<InstanceView>(`/api/instances/${id}`, signal), [id]);
  const pinned = query.value.get("execution");
  const history = useHistory(id, pinned ? Number(pinned) : undefined);
  const [selected, select] = useState<number | undefined>();
  const live = !pinned;
  useLive(
    {
      changed: () => {
        instance.reload();
        if (live) void history.more();
      },
      resync: () => {
        instance.reload();
        if (live) void history.more();
      },
    },
    [id, live, instance.reload, history.more],
    id,
  );
  const summary = instance.data;
  const open = summary !== undefined && !terminal.includes(summary.status);
  const failed = useMemo(
    () =>
      summary?.status === "failed" && history.page
        ? failedStep(foldTimeline(history.page.events), summary.error)
        : undefined,
    [summary?.status, summary?.error, history.page],
  );
  // A notice may be lost, so a running instance is also read from time to time.
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(() => {
      instance.reload();
      if (live) void history.more();
    }, 5000);
    return () => clearInterval(timer);
  });
  const values = summary && (
    <>
      <Values summary={summary} />
      <StreamPanel instanceId={id} />
    </>
  );
  return (
    <>
      <PageHead list={["/orchestrations", "Orchestrations"]} kind="Orchestration" id={id}>
        {summary && <InstanceActions instance={summary} />}
      </PageHead>
      {instance.error !== undefined && <Problem error={instance.error} />}
      {(!summary || !history.page) && instance.error === undefined && history.error === undefined && (
        <Loading />
      )}
      {summary && (
        <Header
          summary={summary}
          events={pinned ? undefined : history.page?.total}
          stepShown={failed?.failure?.stack !== undefined}
        />
      )}
      {summary?.status === "parked" && <Parked summary={summary} />}
      {failed && <FailedStep step={failed} />}
      {history.page && (
        <>
          <Executions page={history.page} pinned={pinned} />
          <HistoryPanels
            instanceId={id}
            page={history.page}
            live={open && live && summary?.status !== "parked"}
            selected={selected}
            select={select}
          >
            {values}
          </HistoryPanels>
        </>
      )}
      {!history.page && values}
      {history.error !== undefined && summary?.status !== "pending" && <Problem error={history.error} />}
      <Commands id={id} open={open} />
    </>
  );
}

/** Also used for a history from a file: everything below depends on the events alone. */
export function HistoryPanels(props: {
  instanceId: string;
  page: HistoryPage;
  live: boolean;
  selected: number | undefined;
  select: (id: number | undefined) => void;
  /** Shown between the picture and the table. */
  children?: ComponentChildren;
}) {
  const { page, live, selected, select } = props;
  const model = useMemo(() => foldTimeline(page.events), [page]);
  return (
    <>
      {live && <PendingWork instanceId={props.instanceId} page={page} select={select} />}
      <Timeline model={model} live={live && !model.ended} selected={selected} select={select} />
      {props.children}
      <HistoryViews instanceId={props.instanceId} page={page} selected={selected} select={select} />
    </>
  );
}

/** Why the instance is parked and what makes it continue: no message does. */
function Parked({ summary }: { summary: InstanceView }) {
  const { message, code } = summary.error ?? { message: "no reason was recorded", code: "parked" };
  return (
    <Card title="Parked: it cannot go on">
      <p>
        {message} <code>{code}</code>
      </p>
      <p class="remedy">
        What helps: <Prose text={`${unparking(summary.instanceId, code)}.`} />
      </p>
    </Card>
  );
}

/**
 * `events`: the number of events in the list below, once loaded. The summary may be a turn behind or ahead.
 */
function Header(props: { summary: InstanceView; events: number | undefined; stepShown: boolean }) {
  const { summary, events, stepShown } = props;
  return (
    <Card>
      <Facts
        flow
        facts={[
          ["Status", <Badge status={summary.status} />],
          ["Name", summary.name ?? "–"],
          ["Started", <When at={summary.startedAt} />],
          [
            terminal.includes(summary.status) ? "Took" : "So far",
            <Took from={summary.startedAt} to={summary.endedAt} />,
          ],
          ["Events", String(events ?? summary.events)],
          ...(summary.parent
            ? [
                [
                  "Parent",
                  <Id href={`/orchestrations/${summary.parent.instanceId}`}>{summary.parent.instanceId}</Id>,
                ] as [string, ComponentChildren],
              ]
            : []),
          ...(summary.sessions?.length
            ? [
                [
                  "Sessions",
                  summary.sessions.map((session) => (
                    <Id key={session} href={`/sessions/${session}`}>
                      {session}
                    </Id>
                  )),
                ] as [string, ComponentChildren],
              ]
            : []),
          ["Children", <a href={`/orchestrations?parent=${summary.instanceId}`}>show</a>],
        ]}
      />
      {summary.error && summary.status !== "parked" && (
        <div class="notice error below">
          <strong>
            {summary.error.code}: {summary.error.message}
          </strong>
          {summary.error.stack && !stepShown && <Stack text={summary.error.stack} />}
        </div>
      )}
    </Card>
  );
}

function Executions({ page, pinned }: { page: HistoryPage; pinned: string | null }) {
  if (page.executions.length < 2) return null;
  return (
    <nav class="chips" aria-label="Executions">
      {page.executions.map((execution) => (
        <button
          key={execution}
          type="button"
          class="chip"
          aria-pressed={execution === page.execution}
          onClick={() =>
            setQuery({ execution: execution === page.executions.at(-1) ? undefined : String(execution) })
          }
        >
          execution {execution}
        </button>
      ))}
      {pinned && <span class="muted">of the past: not live</span>}
    </nav>
  );
}

function Values({ summary }: { summary: InstanceView }) {
  const { customStatus } = summary;
  return (
    <div class="grid two">
      <Card title="Input">
        <Json value={summary.input ?? null} label="Input" />
      </Card>
      {/* Of what runs, the status says more than a result that is not there. */}
      {(terminal.includes(summary.status) || customStatus === undefined) && <Result summary={summary} />}
      {customStatus !== undefined && (
        <Card title="Status set by the code">
          <Json value={customStatus} label="Status set by the code" />
        </Card>
      )}
    </div>
  );
}

function Result({ summary }: { summary: InstanceView }) {
  const { status, output, error } = summary;
  if (status === "completed")
    return (
      <Card title="Result">
        <Json value={output ?? null} label="Result" />
      </Card>
    );
  if (!terminal.includes(status))
    return (
      <Card title="Result">
        <p class="muted">Not there yet.</p>
      </Card>
    );
  return (
    <Card title="How it ended">
      {error ? (
        <Json value={withoutStack(error)} label="Error" />
      ) : (
        <p class="muted">{`It was ${status}.`}</p>
      )}
    </Card>
  );
}

/** The stack is shown above, in lines. */
const withoutStack = ({ stack: _, ...error }: NonNullable<InstanceView["error"]>) => error;

function Commands({ id, open }: { id: string; open: boolean }) {
  const prefix = me.value?.prefix ? `${me.value.prefix}.` : "";
  return (
    <Card title="The same from a terminal">
      <Command label={open ? "Watch it" : "See it"} text={`holdfast ${open ? "watch" : "get"} ${id}`} />
      <Command label="Its history" text={`holdfast history ${id} --export > ${id}.history.json`} />
      {open ? (
        <>
          <Command label="Wait for it" text={`nats req ${prefix}result.${id} ''`} />
          <Command
            label="Signal it"
            text={`nats pub --jetstream ${prefix}orchestrations.${id}.signal.<name> '{}'`}
          />
          <Command
            label="Cancel it"
            text={`nats pub --jetstream ${prefix}orchestrations.${id}.cancel '{}'`}
          />
        </>
      ) : (
        <Command label="Its result" text={`nats req ${prefix}result.${id} ''`} />
      )}
    </Card>
  );
}
