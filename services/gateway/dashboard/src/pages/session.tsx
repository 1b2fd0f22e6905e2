import { get, mayAct, type SessionRow } from "../api.ts";
import { absolute, count, duration } from "../format.ts";
import { useLive } from "../live.ts";
import { Badge, Card, Command, Facts, Id, Problem, Took, When } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";
import { LeaseBar } from "../parts/lease-bar.tsx";
import { useLoad } from "../parts/use-load.ts";
import { drain, evict, isHeld } from "./sessions.tsx";

export function SessionPage({ id }: { id: string }) {
  const session = useLoad((signal) => get<SessionRow>(`/api/sessions/${id}`, signal), [id]);
  const explained = useLoad(
    (signal) => get<{ sentences: string[] }>(`/api/sessions/${id}/explain`, signal),
    [id, session.data?.phase, session.data?.epoch],
  );
  useLive(
    {
      sessions: ({ rows }) => {
        const mine = rows.find((row) => row.sessionId === id);
        if (mine) session.set(() => mine);
      },
      resync: session.reload,
    },
    [id, session.reload],
  );
  const row = session.data;
  return (
    <>
      <div class="page-head">
        <div>
          <p class="crumb">
            <a href="/sessions">Sessions</a>
          </p>
          <h1 class="with-id">
            <code>{id}</code>
          </h1>
        </div>
        {row && mayAct() && isHeld(row) && (
          <div class="actions">
            <button type="button" class="button" onClick={() => drain(row)}>
              Drain…
            </button>
            <button type="button" class="button danger" onClick={() => evict(row)}>
              Evict…
            </button>
          </div>
        )}
      </div>
      {session.error !== undefined && <Problem error={session.error} />}
      {row && (
        <>
          <Card title="Why it is where it is">
            {explained.data ? (
              <ul class="sentences">
                {explained.data.sentences.map((sentence) => (
                  <li key={sentence}>{sentence}</li>
                ))}
              </ul>
            ) : (
              <p class="muted">…</p>
            )}
            <button type="button" class="button small" onClick={explained.reload}>
              Explain again
            </button>
          </Card>
          <Card>
            <Facts facts={factsOf(row)} />
          </Card>
          <Owners row={row} />
          {row.work?.snapshot !== undefined && (
            <Card title="What it says about itself">
              <Json value={row.work.snapshot} label="Snapshot" />
            </Card>
          )}
          {Object.keys(row.metadata).length > 0 && (
            <Card title="Metadata">
              <Json value={row.metadata} label="Metadata" />
            </Card>
          )}
          <Card title="The same from a terminal">
            <Command label="Explain" text={`holdfast sessions explain ${id}`} />
            <Command label="Drain" text={`holdfast sessions drain ${id}`} />
            <Command label="Evict" text={`holdfast sessions evict ${id}`} />
          </Card>
        </>
      )}
    </>
  );
}

function factsOf(row: SessionRow): [string, preact.ComponentChildren][] {
  const requirements = [
    ...row.requires.tags,
    ...Object.entries(row.requires.resources).map(([name, need]) => `${need} ${name}`),
  ];
  return [
    ["State", <Badge status={row.phase} />],
    ["Type", row.type],
    ["Orchestration", <Id href={`/orchestrations/${row.instanceId}`}>{row.instanceId}</Id>],
    ["Holder", row.workerId ? <Id href={`/workers/${row.workerId}`}>{row.workerId}</Id> : "nobody"],
    ["Host", row.host ?? "–"],
    ["Epoch", row.epoch === undefined ? "–" : String(row.epoch)],
    ["Attachment", String(row.attachment)],
    ["Lease", <LeaseBar lease={row.lease} />],
    ["Calls", row.work ? count(row.work.calls) : "–"],
    ["Running, queued", row.work ? `${row.work.running}, ${row.work.queued}` : "–"],
    ["Init took", row.initMs === undefined ? "–" : duration(row.initMs)],
    ["Needs", requirements.length === 0 ? "nothing special" : requirements.join(", ")],
    ["Opened", <When at={row.openedAt} />],
    ...(row.lost
      ? ([["Last lost", `${absolute(row.lost.at)} (${row.lost.reason})`]] as [string, string][])
      : []),
  ];
}

function Owners({ row }: { row: SessionRow }) {
  if (row.owners.length === 0) return null;
  return (
    <Card title="Who held it">
      <div class="table-wrap">
        <table>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col" class="right">
                Epoch
              </th>
              <th scope="col">From</th>
              <th scope="col" class="right">
                For
              </th>
              <th scope="col">Ended by</th>
            </tr>
          </thead>
          <tbody>
            {[...row.owners].reverse().map((owner) => (
              <tr key={owner.epoch}>
                <td>
                  <Id>{owner.workerId}</Id>
                </td>
                <td class="right number">{owner.epoch}</td>
                <td>
                  <When at={owner.from} />
                </td>
                <td class="right">
                  <Took from={owner.from} to={owner.to} />
                </td>
                <td>{owner.to === undefined ? <span class="muted">holds it</span> : (owner.end ?? "–")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
