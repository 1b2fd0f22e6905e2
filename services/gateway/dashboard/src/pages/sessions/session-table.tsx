/** The table of sessions and the actions on a row. */
import { phaseWord, shortEpoch } from "../../../../../../shared/wording/index.ts";
import { mayAct, post, type SessionRow } from "../../api.ts";
import { count, duration, plural } from "../../format.ts";
import { Badge, Id, When } from "../../parts/basics.tsx";
import { ask } from "../../parts/dialog.tsx";
import { LeaseBar } from "../../parts/lease-bar.tsx";
import { ActionsHead, NumberCell, NumberHead } from "../../parts/table.tsx";

export function SessionTable({ rows }: { rows: SessionRow[] }) {
  return (
    <section class="table-wrap" aria-label="Sessions">
      <table class="cards sessions-table">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col">State</th>
            <th scope="col">Holder</th>
            <th scope="col">Lease</th>
            <NumberHead>Calls</NumberHead>
            <NumberHead>Waiting</NumberHead>
            <th scope="col">Opened</th>
            <ActionsHead />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <SessionLine key={row.sessionId} row={row} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function SessionLine({ row }: { row: SessionRow }) {
  return (
    <tr>
      <td class="title">
        <div>
          <Id href={`/sessions/${row.sessionId}`}>{row.sessionId}</Id>
          <div class="muted under">
            {row.type}
            {row.metadata["holdfast-key"] !== undefined && ` · key ${row.metadata["holdfast-key"]}`}
          </div>
        </div>
      </td>
      <td data-label="State">
        <Badge status={phaseWord(row.phase)} />
      </td>
      <td data-label="Holder">
        {row.workerId ? (
          <div>
            <Id href={`/workers/${row.workerId}`}>{row.workerId}</Id>
            {row.epoch !== undefined && (
              <div class="muted under">
                <span title={String(row.epoch)}>epoch {shortEpoch(row.epoch)}</span>
                {row.owners.length > 1 && `, after ${plural(row.owners.length - 1, "other")}`}
              </div>
            )}
          </div>
        ) : (
          <span class="muted">nobody</span>
        )}
      </td>
      <td class="wide" data-label="Lease">
        <LeaseBar lease={row.lease} />
      </td>
      <NumberCell label="Calls">{row.work ? count(row.work.calls) : "–"}</NumberCell>
      <NumberCell label="Waiting">{row.work ? row.work.queued + row.work.running : "–"}</NumberCell>
      <td data-label="Opened">
        <div>
          <When at={row.openedAt} />
          {row.initMs !== undefined && <div class="muted under">init {duration(row.initMs)}</div>}
        </div>
      </td>
      {mayAct() && (
        <td class="right">
          {isHeld(row) && (
            <span class="row-actions">
              <button type="button" class="button small" onClick={() => drain(row)}>
                Drain…
              </button>
              <button type="button" class="button small" onClick={() => evict(row)}>
                Evict…
              </button>
            </span>
          )}
        </td>
      )}
    </tr>
  );
}

export const isHeld = (row: SessionRow): boolean =>
  row.workerId !== undefined && ["claimed", "active", "rebuilding"].includes(row.phase);

export function evict(row: SessionRow): void {
  giveUp(
    row,
    "evict",
    `${row.workerId} gives it up at once and its state is gone. The orchestration gets session_lost (evicted) and does what it has declared for a loss.`,
  );
}

/** Asks whether to close the session of a key, then asks its keeper to do it. */
export function closeKey(row: SessionRow): void {
  const key = row.metadata["holdfast-key"] ?? "";
  ask({
    title: `Close ${row.type} of key ${key}?`,
    text: "Its state goes, for everybody who uses the key. The next call opens it anew.",
    button: "Close it",
    danger: true,
    fields: [{ name: "reason", label: "Reason (optional)" }],
    commands: () => [{ label: "CLI", text: `holdfast sessions close ${row.type} ${key}` }],
    done: "Its keeper is asked to close it",
    act: ({ reason = "" }) => post(`/api/sessions/${row.type}/${key}/close`, reason ? { reason } : {}),
  });
}

export function drain(row: SessionRow): void {
  giveUp(
    row,
    "drain",
    `${row.workerId} finishes what runs, saves the state where the type can, and hands the session to another worker.`,
  );
}

function giveUp(row: SessionRow, verb: "evict" | "drain", text: string): void {
  const name = verb === "evict" ? "Evict" : "Drain";
  ask({
    title: `${name} session ${row.sessionId}?`,
    text,
    button: `${name} it`,
    danger: verb === "evict",
    fields: [{ name: "reason", label: "Reason (optional)" }],
    commands: () => [{ label: "CLI", text: `holdfast sessions ${verb} ${row.sessionId}` }],
    done: "Told its holder to give it up",
    act: ({ reason = "" }) => post(`/api/sessions/${row.sessionId}/${verb}`, reason ? { reason } : {}),
  });
}
