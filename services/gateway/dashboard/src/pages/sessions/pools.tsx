import type { PoolRow } from "../../../../routes/pools.ts";
import { get, mayAct, post } from "../../api.ts";
import { Problem } from "../../parts/basics.tsx";
import { toast } from "../../parts/toasts.tsx";
import { useLoad } from "../../parts/use-load.ts";

/** Pools of sessions: their sizes and the actions on them. Renders nothing without pools. */
export function Pools() {
  const { data, error, reload } = useLoad((signal) => get<{ rows: PoolRow[] }>("/api/pools", signal), []);
  if (error !== undefined) return <Problem error={error} />;
  if (!data || data.rows.length === 0) return null;
  const act = async (pool: PoolRow, verb: string, body: object = {}) => {
    await post(`/api/pools/${pool.poolId}/${verb}`, body);
    toast(`${verb}: sent to the keeper of ${pool.poolId}`);
    setTimeout(reload, 500);
  };
  const resize = (pool: PoolRow, by: number) =>
    act(pool, "resize", {
      min: Math.max(0, pool.min + by),
      max: Math.max(1, pool.max, pool.min + by),
    });
  return (
    <section class="table-wrap" aria-label="Pools">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Pool</th>
            <th scope="col">State</th>
            <th scope="col" class="right">
              Members
            </th>
            <th scope="col" class="right">
              Min–max
            </th>
            <th scope="col" class="right">
              Users
            </th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {data.rows.map((pool) => (
            <tr key={pool.poolId}>
              <th scope="row" class="title">
                <a href={`/orchestrations/${pool.instanceId}`}>{pool.poolId}</a>
              </th>
              <td data-label="State">
                {pool.paused ? "paused" : pool.declared ? "kept warm" : "open while in use"}
                {pool.error !== undefined && <span class="muted"> {pool.error}</span>}
              </td>
              <td class="right number" data-label="Members">
                {pool.members}
              </td>
              <td class="right number" data-label="Min–max">
                {pool.min}–{pool.max}
              </td>
              <td class="right number" data-label="Users">
                {pool.users}
              </td>
              <td class="right">
                {mayAct() && (
                  <span class="row-actions">
                    <button type="button" class="button small" onClick={() => void resize(pool, 1)}>
                      One more
                    </button>
                    <button
                      type="button"
                      class="button small"
                      disabled={pool.min === 0}
                      onClick={() => void resize(pool, -1)}
                    >
                      One less
                    </button>
                    <button
                      type="button"
                      class="button small"
                      onClick={() => void act(pool, pool.paused ? "resume" : "pause")}
                    >
                      {pool.paused ? "Resume" : "Pause"}
                    </button>
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
