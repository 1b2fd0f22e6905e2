import { get, type InstanceRow } from "../../api.ts";
import { Card, Id, Problem, When } from "../../parts/basics.tsx";
import { useLoad } from "../../parts/use-load.ts";

/** The latest failed orchestrations; loaded again whenever the number of failures grows. */
export function LatestFailures({ failed }: { failed: number }) {
  const { data, error } = useLoad(
    (signal) => get<{ rows: InstanceRow[] }>("/api/instances?status=failed&limit=5", signal),
    [failed],
  );
  if (error !== undefined) return <Problem error={error} />;
  if (!data) return null;
  return (
    <Card title="Latest failures" aside={<a href="/orchestrations?status=failed">All failed</a>}>
      <ul class="failures">
        {data.rows.map((row) => (
          <li key={row.instanceId} class="failure">
            <Id href={`/orchestrations/${row.instanceId}`}>{row.instanceId}</Id>
            <span class="failure-name">{row.name}</span>
            <span class="bad failure-why" title={row.error?.message}>
              {row.error?.message}
            </span>
            <span class="muted">
              <When at={row.endedAt ?? row.updatedAt} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
