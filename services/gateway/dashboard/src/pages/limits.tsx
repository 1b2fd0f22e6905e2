/** What limits work on purpose: keys of flow control, and seats for sessions. Pools are with the sessions. */
import { get, type SessionRow, type WorkerRow } from "../api.ts";
import { count } from "../format.ts";
import { useLive } from "../live.ts";
import { Card, Command, Loading, Meter, Problem } from "../parts/basics.tsx";
import { NumberCell, NumberHead } from "../parts/table.tsx";
import { useEvery, useLoad } from "../parts/use-load.ts";

interface WaitingKey {
  key: string;
  waiting: number;
}

export function LimitsPage() {
  const flow = useLoad((signal) => get<{ rows: WaitingKey[] }>("/api/flow", signal), []);
  const workers = useLoad((signal) => get<{ rows: WorkerRow[] }>("/api/workers", signal), []);
  const sessions = useLoad((signal) => get<{ rows: SessionRow[] }>("/api/sessions?limit=2000", signal), []);
  const reloadAll = () => {
    for (const one of [flow, workers, sessions]) one.reload();
  };
  useLive({ sessions: sessions.reload, workers: workers.reload, resync: reloadAll }, [
    sessions.reload,
    workers.reload,
  ]);
  useEvery(2_500, flow.reload);
  return (
    <>
      <h1>Limits</h1>
      {[flow.error, workers.error, sessions.error].map(
        (error, index) => error !== undefined && <Problem key={index} error={error} />,
      )}
      <Card title="Starts that wait for their key">
        {flow.data === undefined ? (
          flow.error === undefined && <Loading />
        ) : flow.data.rows.length === 0 ? (
          <p class="muted">
            None. A start with <code>flow</code> waits here while its key has as many running, or has begun as
            many in a period, as its rule allows.
          </p>
        ) : (
          <table class="cards dense">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <NumberHead>Waiting</NumberHead>
              </tr>
            </thead>
            <tbody>
              {flow.data.rows.map(({ key, waiting }) => (
                <tr key={key}>
                  <td class="title">
                    <code>{key}</code>
                  </td>
                  <NumberCell label="Waiting">{count(waiting)}</NumberCell>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <Card title="Seats for sessions, by type">
        {workers.data === undefined || sessions.data === undefined ? (
          <Loading />
        ) : (
          <Seats workers={workers.data.rows} sessions={sessions.data.rows} />
        )}
      </Card>
      <Card title="The same from a terminal">
        <Command label="All findings" text="holdfast doctor" />
        <Command label="Workers, seats" text="holdfast workers list" />
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
          <NumberHead>Workers</NumberHead>
          <th scope="col">Seats used</th>
          <th scope="col">Quota over all workers</th>
          <NumberHead>Sessions that wait</NumberHead>
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
              <NumberCell label="Workers">{serving.length}</NumberCell>
              <td class="wide" data-label="Seats used">
                {own.length === 0 ? (
                  <span class="muted">no limit of its own</span>
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
              <NumberCell label="Waiting">{waiting.length}</NumberCell>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
