/** What limits work on purpose: keys of flow control, seats for sessions, and the pools that share them. */
import { get, type SessionRow, type WorkerRow } from "../api.ts";
import { count } from "../format.ts";
import { Card, Command, Empty, Id, Meter, Problem } from "../parts/basics.tsx";
import { useLoad } from "../parts/use-load.ts";

interface WaitingKey {
  key: string;
  waiting: number;
}

export function LimitsPage() {
  const flow = useLoad((signal) => get<{ rows: WaitingKey[] }>("/api/flow", signal), []);
  const workers = useLoad((signal) => get<{ rows: WorkerRow[] }>("/api/workers", signal), []);
  const sessions = useLoad((signal) => get<{ rows: SessionRow[] }>("/api/sessions?limit=2000", signal), []);
  return (
    <>
      <h1>Limits and pools</h1>
      {[flow.error, workers.error, sessions.error].map(
        (error, index) => error !== undefined && <Problem key={index} error={error} />,
      )}
      <Card title="Starts that wait for their key">
        {(flow.data?.rows.length ?? 0) === 0 ? (
          <Empty title="No start waits">
            <p class="muted">
              A start with <code>flow</code> waits here while its key has as many running, or has begun as
              many in a period, as its rule allows.
            </p>
          </Empty>
        ) : (
          <table class="cards dense">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col" class="right">
                  Waiting, at least
                </th>
              </tr>
            </thead>
            <tbody>
              {flow.data?.rows.map(({ key, waiting }) => (
                <tr key={key}>
                  <td class="title">
                    <code>{key}</code>
                  </td>
                  <td class="right number" data-label="Waiting, at least">
                    {count(waiting)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <Card title="Seats for sessions, by type">
        <Seats workers={workers.data?.rows ?? []} sessions={sessions.data?.rows ?? []} />
      </Card>
      <Card title="Pools">
        <Pools sessions={sessions.data?.rows ?? []} />
      </Card>
      <Card title="The same from a terminal">
        <Command label="Quotas and queues" text="holdfast doctor" />
        <Command label="Workers and their seats" text="holdfast workers list" />
      </Card>
    </>
  );
}

const waitingPhases = ["opening", "claimed"];

function Seats({ workers, sessions }: { workers: WorkerRow[]; sessions: SessionRow[] }) {
  const types = [...new Set(workers.flatMap((worker) => worker.sessionTypes as string[]))].sort();
  if (types.length === 0) return <p class="muted">No worker serves a session type.</p>;
  return (
    <table class="cards dense">
      <thead>
        <tr>
          <th scope="col">Type</th>
          <th scope="col" class="right">
            Workers
          </th>
          <th scope="col">Seats used, where the type has its own</th>
          <th scope="col">Quota of the whole installation</th>
          <th scope="col" class="right">
            Sessions that wait
          </th>
        </tr>
      </thead>
      <tbody>
        {types.map((type) => {
          const serving = workers.filter((worker) => worker.sessionTypes.some((one) => one === type));
          const own = serving.flatMap((worker) => worker.perType[type] ?? []);
          const used = own.reduce((sum, seats) => sum + seats.used, 0);
          const max = own.reduce((sum, seats) => sum + seats.max, 0);
          const quota = serving.flatMap((worker) => worker.quotas?.types[type] ?? [])[0];
          const waiting = sessions.filter((row) => row.type === type && waitingPhases.includes(row.phase));
          return (
            <tr key={type}>
              <th scope="row" class="title">
                <a href={`/sessions?type=${encodeURIComponent(type)}`}>{type}</a>
              </th>
              <td class="right number" data-label="Workers">
                {serving.length}
              </td>
              <td data-label="Seats used">
                {own.length === 0 ? (
                  <span class="muted">those of the workers</span>
                ) : (
                  <Meter used={used} max={max} label={type} />
                )}
              </td>
              <td data-label="Quota">
                {quota ? (
                  <Meter used={quota.used} max={quota.max} label={`quota of ${type}`} />
                ) : (
                  <span class="muted">none</span>
                )}
              </td>
              <td class="right number" data-label="Waiting">
                {waiting.length}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Pools({ sessions }: { sessions: SessionRow[] }) {
  const members = new Map<string, SessionRow[]>();
  for (const row of sessions) {
    const pool = row.metadata["holdfast-pool"];
    if (pool !== undefined && row.phase !== "closed")
      members.set(String(pool), [...(members.get(String(pool)) ?? []), row]);
  }
  if (members.size === 0) {
    return (
      <p class="muted">
        No pool is open. A pool shares a number of sessions among many orchestrations (
        <code>ctx.usePool</code>).
      </p>
    );
  }
  return (
    <table class="cards dense">
      <thead>
        <tr>
          <th scope="col">Pool</th>
          <th scope="col">Type</th>
          <th scope="col" class="right">
            Members
          </th>
          <th scope="col" class="right">
            Calls running, queued
          </th>
          <th scope="col">Kept by</th>
        </tr>
      </thead>
      <tbody>
        {[...members].map(([pool, rows]) => {
          const sum = (of: "running" | "queued") =>
            rows.reduce((all, { work }) => all + (work?.[of] ?? 0), 0);
          const keeper = rows[0]?.instanceId ?? "";
          return (
            <tr key={pool}>
              <td class="title">{pool}</td>
              <td data-label="Type">{rows[0]?.type}</td>
              <td class="right number" data-label="Members">
                {rows.length}
              </td>
              <td class="right number" data-label="Running, queued">
                {sum("running")}, {sum("queued")}
              </td>
              <td data-label="Kept by">
                <Id href={`/orchestrations/${keeper}`}>{keeper}</Id>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
