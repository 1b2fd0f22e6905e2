import type { PoolRow } from "../../../../routes/pools.ts";
import { get, mayAct, post } from "../../api.ts";
import { Problem } from "../../parts/basics.tsx";
import { ask } from "../../parts/dialog.tsx";
import { ActionsHead, NumberCell, NumberHead } from "../../parts/table.tsx";
import { useEvery, useLoad } from "../../parts/use-load.ts";

/** Pools of sessions: their sizes and the actions on them. Renders nothing without pools. */
export function Pools() {
  const { data, error, reload } = useLoad((signal) => get<{ rows: PoolRow[] }>("/api/pools", signal), []);
  useEvery(2_500, reload);
  if (error !== undefined) return <Problem error={error} />;
  if (!data || data.rows.length === 0) return null;
  return (
    <section class="table-wrap" aria-label="Pools">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Pool</th>
            <th scope="col">State</th>
            <NumberHead>Members</NumberHead>
            <NumberHead>Min–max</NumberHead>
            <NumberHead>Users</NumberHead>
            <ActionsHead />
          </tr>
        </thead>
        <tbody>
          {data.rows.map((pool) => (
            <tr key={pool.poolId}>
              <th scope="row" class="title">
                <a href={`/orchestrations/${pool.instanceId}`}>{pool.poolId}</a>
              </th>
              <td data-label="State">
                <span>
                  {pool.paused ? "paused" : pool.declared ? "kept warm" : "open while in use"}
                  {pool.error !== undefined && <span class="muted"> {pool.error}</span>}
                </span>
              </td>
              <NumberCell label="Members">{pool.members}</NumberCell>
              <NumberCell label="Min–max">
                {pool.min}–{pool.max}
              </NumberCell>
              <NumberCell label="Users">{pool.users}</NumberCell>
              {mayAct() && (
                <td class="right">
                  <Actions pool={pool} reload={reload} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Actions({ pool, reload }: { pool: PoolRow; reload: () => void }) {
  const { poolId } = pool;
  const order = (verb: string, body: object = {}) => post(`/api/pools/${poolId}/${verb}`, body).then(reload);
  const resize = () =>
    ask({
      title: `Resize ${poolId}?`,
      text: "Holds until its declaration changes. Members beyond the largest number are closed, the youngest first; their calls run again on others.",
      button: "Resize it",
      fields: [
        { name: "min", label: "Kept warm, at least", required: true, value: String(pool.min) },
        { name: "max", label: "At most", required: true, value: String(pool.max) },
      ],
      commands: ({ min = "", max = "" }) => [
        { label: "CLI", text: `holdfast pools resize ${poolId} --min ${min} --max ${max}` },
      ],
      done: "The new size is sent to its keeper",
      act: ({ min, max }) => order("resize", { min: whole("Kept warm", min), max: whole("At most", max) }),
    });
  const pauseOrResume = () =>
    pool.paused
      ? ask({
          title: `Resume ${poolId}?`,
          text: "It gets its members again, and the calls that waited run.",
          button: "Resume it",
          commands: () => [{ label: "CLI", text: `holdfast pools resume ${poolId}` }],
          done: "Its keeper is asked to resume it",
          act: () => order("resume"),
        })
      : ask({
          title: `Pause ${poolId}?`,
          text: "Its members go, its calls wait until it is resumed; borrowers keep what they have.",
          button: "Pause it",
          danger: true,
          commands: () => [{ label: "CLI", text: `holdfast pools pause ${poolId}` }],
          done: "Its keeper is asked to pause it",
          act: () => order("pause"),
        });
  return (
    <span class="row-actions">
      <button type="button" class="button small" onClick={resize}>
        Resize…
      </button>
      <button type="button" class="button small" onClick={pauseOrResume}>
        {pool.paused ? "Resume…" : "Pause…"}
      </button>
    </span>
  );
}

function whole(what: string, text = ""): number {
  if (!/^\d+$/.test(text.trim())) throw new Error(`${what}: ${text || "nothing"} is not a whole number`);
  return Number(text);
}
