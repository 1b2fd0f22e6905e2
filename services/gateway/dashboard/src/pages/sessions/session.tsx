/** One session: its record, its holder and its life. */
import { phaseWord, shortEpoch } from "../../../../../../shared/wording/index.ts";
import { ApiError, get, type InstanceRow, mayAct, type SessionRow, type WorkerRow } from "../../api.ts";
import { bytes, count, duration, plural } from "../../format.ts";
import { useLive } from "../../live.ts";
import {
  Badge,
  Card,
  Command,
  Empty,
  Facts,
  Id,
  Loading,
  PageHead,
  Problem,
  Took,
  When,
} from "../../parts/basics.tsx";
import { Json } from "../../parts/json.tsx";
import { LeaseBar } from "../../parts/lease-bar.tsx";
import { NumberCell, NumberHead } from "../../parts/table.tsx";
import { useLoad } from "../../parts/use-load.ts";
import { SessionLife } from "./session-life.tsx";
import { closeKey, drain, evict, isHeld } from "./session-table.tsx";

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
      <PageHead list={["/sessions", "Sessions"]} kind="Session" id={id}>
        {row && mayAct() && isHeld(row) && (
          <div class="actions">
            <button type="button" class="button" onClick={() => drain(row)}>
              Drain…
            </button>
            <button type="button" class="button danger" onClick={() => evict(row)}>
              Evict…
            </button>
            {row.metadata["holdfast-key"] !== undefined && (
              <button type="button" class="button danger" onClick={() => closeKey(row)}>
                Close…
              </button>
            )}
          </div>
        )}
      </PageHead>
      {!row && session.error === undefined && <Loading />}
      {session.error instanceof ApiError && session.error.status === 404 ? (
        <Gone id={id} />
      ) : (
        session.error !== undefined && <Problem error={session.error} />
      )}
      {row && (
        <>
          <Card
            title="Why it is where it is"
            aside={
              <button type="button" class="button small" onClick={explained.reload}>
                Refresh
              </button>
            }
          >
            {explained.data ? (
              <ul class="sentences">
                {explained.data.sentences.map((sentence) => (
                  <li key={sentence}>{sentence}</li>
                ))}
              </ul>
            ) : (
              <p class="muted">…</p>
            )}
          </Card>
          <Card>
            <Facts facts={factsOf(row)} />
          </Card>
          <SessionLife
            instanceId={row.instanceId}
            sessionId={id}
            over={row.phase === "closed" || row.phase === "failed"}
          >
            <Owners row={row} />
          </SessionLife>
          {row.work?.snapshot !== undefined && (
            <Card title="What it says about itself">
              <Json value={row.work.snapshot} label="Snapshot" />
            </Card>
          )}
          {Object.keys(noted(row)).length > 0 && (
            <Card title="Metadata">
              <Json value={noted(row)} label="Metadata" />
            </Card>
          )}
          <Blobs row={row} />
          <Card title="The same from a terminal">
            <Command label="Explain" text={`holdfast sessions explain ${id}`} />
            {isHeld(row) && (
              <>
                <Command label="Drain" text={`holdfast sessions drain ${id}`} />
                <Command label="Evict" text={`holdfast sessions evict ${id}`} />
                {row.metadata["holdfast-key"] !== undefined && (
                  <Command
                    label="Close"
                    text={`holdfast sessions close ${row.type} ${row.metadata["holdfast-key"]}`}
                  />
                )}
              </>
            )}
          </Card>
        </>
      )}
    </>
  );
}

/** The session's record was deleted with its instance; the instance's history is kept longer and has its life. */
function Gone({ id }: { id: string }) {
  const users = useLoad(
    (signal) => get<{ rows: InstanceRow[] }>(`/api/instances?session=${id}&limit=1`, signal),
    [id],
  );
  if (!users.data) return null;
  const instanceId = users.data.rows[0]?.instanceId;
  if (instanceId === undefined)
    return (
      <Empty title="This session is not known here">
        <p class="muted">It never was, or its orchestration and its history have been removed.</p>
      </Empty>
    );
  return (
    <>
      <Card>
        <Facts
          flow
          facts={[
            ["State", <Badge status="closed" />],
            ["Orchestration", <Id href={`/orchestrations/${instanceId}`}>{instanceId}</Id>],
          ]}
        />
        <p class="muted below">Its record is gone. What it did is in the history of its orchestration.</p>
      </Card>
      <SessionLife instanceId={instanceId} sessionId={id} over />
    </>
  );
}

/** What users noted down; the engine's own notes have their places above. */
const noted = ({ metadata }: SessionRow): Record<string, unknown> =>
  Object.fromEntries(Object.entries(metadata).filter(([name]) => !name.startsWith("holdfast-")));

/** A fact that is not known, or does not exist for this session, is left out. */
const factsOf = (row: SessionRow): Fact[] => everyFact(row).filter(([, value]) => value !== undefined);

type Fact = [string, preact.ComponentChildren];

function everyFact(row: SessionRow): Fact[] {
  const requirements = [
    ...row.requires.tags,
    ...Object.entries(row.requires.resources).map(([name, need]) => `${name}=${need}`),
  ];
  return [
    ["State", <Badge status={phaseWord(row.phase)} />],
    ["Type", row.type],
    ["Key", row.metadata["holdfast-key"] as string | undefined],
    ["Pool", row.metadata["holdfast-pool"] as string | undefined],
    ["Orchestration", <Id href={`/orchestrations/${row.instanceId}`}>{row.instanceId}</Id>],
    ["Holder", row.workerId ? <Id href={`/workers/${row.workerId}`}>{row.workerId}</Id> : "nobody"],
    ["Host", row.host],
    ["Epoch", row.epoch && <span title={String(row.epoch)}>{shortEpoch(row.epoch)}</span>],
    ["Attachment", String(row.attachment)],
    ["Lease", <LeaseBar lease={row.lease} />],
    ["Calls of this holder", row.work && count(row.work.calls)],
    ["Running, queued", row.work && `${row.work.running}, ${row.work.queued}`],
    ["Errors", row.work?.errors === undefined ? undefined : count(row.work.errors)],
    ["Last used", row.work?.usedAt && <When at={row.work.usedAt} />],
    ["Models loaded", row.work?.modelLoads === undefined ? undefined : count(row.work.modelLoads)],
    ["State built", builtWords(row)],
    ["Memory of its host", row.work?.hostBytes === undefined ? undefined : bytes(row.work.hostBytes)],
    ["Memory of its worker", row.workerId && <HolderMemory workerId={row.workerId} />],
    ["Init took", row.initMs === undefined ? undefined : duration(row.initMs)],
    ["Needs", requirements.length === 0 ? "nothing special" : requirements.join(", ")],
    ["Opened", <When at={row.openedAt} />],
    [
      "Last lost",
      row.lost && (
        <>
          <When at={row.lost.at} /> <span class="muted">({row.lost.reason})</span>
        </>
      ),
    ],
  ];
}

const builtWords = ({ inits = 0, rebuilds = 0 }: SessionRow): string =>
  `${plural(inits, "time")} by init${rebuilds > 0 ? `, ${rebuilds} by rebuild` : ""}`;

/**
 * Memory of the whole worker process: only a session's own snapshot can say how much of it the session uses.
 */
function HolderMemory({ workerId }: { workerId: string | undefined }) {
  const workers = useLoad((signal) => get<{ rows: WorkerRow[] }>("/api/workers", signal), [workerId]);
  const holder = workers.data?.rows.find((worker) => worker.workerId === workerId);
  return holder ? bytes(holder.rssBytes) : <span class="muted">–</span>;
}

/** What code inside the session stored under names. */
function Blobs({ row }: { row: SessionRow }) {
  const { sessionId, blobs = [] } = row;
  if (blobs.length === 0) return null;
  return (
    <Card title="What it has stored">
      <div class="table-wrap">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <NumberHead>Size</NumberHead>
              <th scope="col">Stored</th>
            </tr>
          </thead>
          <tbody>
            {blobs.map((blob) => (
              <tr key={blob.name}>
                <td class="title">
                  <a href={`/api/sessions/${sessionId}/blobs/${blob.name}`} download={blob.name}>
                    {blob.name}
                  </a>
                </td>
                <NumberCell label="Size">{bytes(blob.bytes)}</NumberCell>
                <td data-label="Stored">
                  <When at={blob.storedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Owners({ row }: { row: SessionRow }) {
  if (row.owners.length === 0) return null;
  return (
    <Card title="Who held it">
      <div class="table-wrap">
        <table class="cards owners">
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <NumberHead>Epoch</NumberHead>
              <th scope="col">From</th>
              <NumberHead>For</NumberHead>
              <th scope="col">Ended by</th>
            </tr>
          </thead>
          <tbody>
            {[...row.owners].reverse().map((owner, index) => (
              <tr key={owner.epoch}>
                <td class="title">
                  <span class={`dot owner-${(row.owners.length - 1 - index) % 8}`} aria-hidden="true" />{" "}
                  <Id>{owner.workerId}</Id>
                </td>
                <NumberCell label="Epoch">
                  <span title={String(owner.epoch)}>{shortEpoch(owner.epoch)}</span>
                </NumberCell>
                <td data-label="From">
                  <When at={owner.from} />
                </td>
                <td class="right" data-label="For">
                  <Took from={owner.from} to={owner.to} />
                </td>
                <td data-label="Ended by">
                  {owner.to === undefined ? <span class="muted">holds it</span> : (owner.end ?? "–")}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
