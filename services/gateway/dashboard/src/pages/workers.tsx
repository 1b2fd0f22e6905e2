/** The live workers: load, memory, builds and sessions. */
import { get, mayAct, post, type WorkerRow } from "../api.ts";
import { bytes, count, duration, plural } from "../format.ts";
import { useLive } from "../live.ts";
import {
  Badge,
  Card,
  Command,
  Empty,
  Facts,
  Id,
  Loading,
  Meter,
  PageHead,
  Problem,
  When,
} from "../parts/basics.tsx";
import { ask } from "../parts/dialog.tsx";
import { useLoad } from "../parts/use-load.ts";

export function WorkersPage({ only }: { only?: string }) {
  const { data, error, reload, set } = useLoad(
    (signal) => get<{ rows: WorkerRow[] }>("/api/workers", signal),
    [],
  );
  useLive(
    {
      workers: ({ rows, gone }) =>
        set((list) => {
          if (!list) return list;
          const byId = new Map(list.rows.map((row) => [row.workerId as string, row]));
          for (const row of rows) byId.set(row.workerId, row);
          for (const id of gone) byId.delete(id);
          return { rows: [...byId.values()] };
        }),
      resync: reload,
    },
    [reload],
  );
  const rows = (data?.rows ?? [])
    .filter((row) => only === undefined || row.workerId === only)
    .sort((a, b) => (a.workerId < b.workerId ? -1 : 1));
  return (
    <>
      {only === undefined ? (
        <h1>Workers</h1>
      ) : (
        <PageHead list={["/workers", "Workers"]} kind="Worker" id={only} />
      )}
      {error !== undefined && <Problem error={error} />}
      {!data && error === undefined && <Loading />}
      {data && rows.length === 0 && (
        <Empty title={only ? "This worker is not alive" : "No worker is running"}>
          <p class="muted">A worker runs activities and holds sessions. Start as many as you like.</p>
          <Command text="holdfast worker --app ./app.ts" />
        </Empty>
      )}
      {!only && rows.length > 0 && <Builds rows={rows} />}
      <div class="workers">
        {rows.map((row) => (
          <WorkerCard key={row.workerId} row={row} whole={only !== undefined} />
        ))}
      </div>
    </>
  );
}

/** The application builds that workers run: during a deployment there are two. */
function Builds({ rows }: { rows: readonly WorkerRow[] }) {
  const builds = new Map<string, WorkerRow[]>();
  for (const row of rows) builds.set(row.buildId, [...(builds.get(row.buildId) ?? []), row]);
  return (
    <p class="serves builds">
      <span class="muted">{builds.size === 1 ? "Build" : "Builds"}</span>{" "}
      {[...builds].map(([build, workers]) => (
        <span key={build} class="tag">
          <strong>{build}</strong> · {plural(workers.length, "worker")}
        </span>
      ))}
      {builds.size > 1 && (
        <span class="muted">
          A deployment is under way. Sessions and pinned instances stay with a build that has their code;
          drain the workers of the old build to finish.
        </span>
      )}
    </p>
  );
}

function WorkerCard({ row, whole }: { row: WorkerRow; whole: boolean }) {
  const { slots } = row;
  return (
    <Card
      class="worker"
      aside={
        mayAct("admin") &&
        !row.draining && (
          <button type="button" class="button small" onClick={() => drain(row)}>
            Drain…
          </button>
        )
      }
    >
      <h2 class="worker-name">
        {whole ? "What it has" : <Id href={`/workers/${row.workerId}`}>{row.workerId}</Id>}
        {row.draining && <Badge status="draining" />}
        {row.tags.map((tag) => (
          <span key={tag} class="tag">
            {tag}
          </span>
        ))}
      </h2>
      <div class="meters">
        <MeterOf name="sessions" {...slots.sessions} />
        <MeterOf name="calls" {...slots.calls} />
        <MeterOf name="activities" {...slots.activities} />
        {Object.entries(row.resources.total).map(([name, total]) => (
          <MeterOf key={name} name={name} used={row.resources.used[name] ?? 0} max={total} />
        ))}
      </div>
      <Facts
        facts={[
          ["Host", `${row.host} (pid ${row.pid})`],
          ["Device", deviceOf(row)],
          ["Memory", bytes(row.rssBytes)],
          ["Event loop late by", `${row.eventLoopDelayMs.toFixed(1)} ms`],
          ["Build", row.buildId],
          ["Started", <When at={row.startedAt} />],
          ["Last sign of life", <When at={row.seenAt} />],
        ]}
      />
      <p class="serves">
        <span class="muted">Sessions of type</span>
        {row.sessionTypes.length === 0 && <span class="muted">none</span>}
        {row.sessionTypes.map((type) => (
          <span key={type} class="tag">
            {type}
          </span>
        ))}
      </p>
      {row.models.length > 0 && (
        <ul class="models" aria-label="Models loaded">
          {row.models.map((model) => (
            <li key={`${model.name}-${model.device}`}>
              <strong>{model.name}</strong> on {model.device}, loaded in {duration(model.loadMs)}
              {model.bytes !== undefined && `, ${bytes(model.bytes)}`}
            </li>
          ))}
        </ul>
      )}
      {row.sessions.length > 0 && (
        <p>
          <a href={`/sessions?worker=${row.workerId}`}>
            {count(row.sessions.length)} {row.sessions.length === 1 ? "session" : "sessions"}
          </a>
        </p>
      )}
      {whole && row.activities.length > 0 && (
        <p class="muted">
          Activities: {row.activities.map(({ queue, name }) => `${name} (${queue})`).join(", ")}
        </p>
      )}
    </Card>
  );
}

/** The device the worker reports, else the device its models report. */
const deviceOf = (row: WorkerRow): string =>
  row.device ?? ([...new Set(row.models.map((model) => model.device))].join(", ") || "–");

function MeterOf({ name, used, max }: { name: string; used: number; max: number }) {
  return (
    <div class="meter-of">
      <span>{name}</span>
      <Meter used={used} max={max} label={name} />
    </div>
  );
}

function drain(row: WorkerRow): void {
  ask({
    title: `Drain worker ${row.workerId}?`,
    text: "It finishes what it has, takes nothing new, hands its sessions on (with a checkpoint where the type can) and stops.",
    button: "Drain it",
    danger: true,
    commands: () => [{ label: "CLI", text: `holdfast workers drain ${row.workerId}` }],
    done: "It is draining",
    act: () => post(`/api/workers/${row.workerId}/drain`),
  });
}
