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
      <div class="table-wrap">
        <table class="cards dense">
          <thead>
            <tr>
              <th scope="col">Id</th>
              <th scope="col">Name</th>
              <th scope="col">Failed</th>
              <th scope="col">Error</th>
            </tr>
          </thead>
          <tbody>
            {data.rows.map((row) => (
              <tr key={row.instanceId}>
                <td class="title">
                  <Id href={`/orchestrations/${row.instanceId}`}>{row.instanceId}</Id>
                </td>
                <td data-label="Name">{row.name}</td>
                <td data-label="Failed">
                  <When at={row.endedAt ?? row.updatedAt} />
                </td>
                <td class="note bad" data-label="Error" title={row.error?.message}>
                  {row.error?.message}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
