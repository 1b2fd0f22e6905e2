import { me, type Overview } from "../api.ts";
import { bytes, count, latency, plural } from "../format.ts";
import { overview } from "../live.ts";
import { Badge, Card, Command } from "../parts/basics.tsx";
import { Columns } from "../parts/sparkline.tsx";

const statuses = ["running", "pending", "parked", "completed", "failed", "cancelled", "terminated"] as const;

export function OverviewPage() {
  const view = overview.value;
  if (!view) return <h1>Overview</h1>;
  const total = statuses.reduce((sum, status) => sum + (view.counts[status] ?? 0), 0);
  return (
    <>
      <h1>Overview</h1>
      <Troubles view={view} />
      {total === 0 && <FirstSteps />}
      <ul class="tiles" aria-label="Orchestrations by status">
        {statuses
          .filter(
            (status) =>
              (view.counts[status] ?? 0) > 0 || !["pending", "parked", "terminated"].includes(status),
          )
          .map((status) => (
            <li key={status}>
              <a class="tile" href={`/orchestrations?status=${status}`}>
                <span class="tile-number">{count(view.counts[status] ?? 0)}</span>
                <Badge status={status} />
              </a>
            </li>
          ))}
      </ul>
      <div class="grid">
        <Rates view={view} />
        <Latency view={view} />
        <Capacity view={view} />
        <Storage view={view} />
      </div>
    </>
  );
}

function Troubles({ view }: { view: Overview }) {
  if (view.troubles.length === 0) {
    return (
      <p class="allgood" role="status">
        <span aria-hidden="true">✓</span> Everything is as it should be.
      </p>
    );
  }
  return (
    <ul class="troubles" aria-label="What needs attention">
      {view.troubles.map((trouble) => (
        <li key={trouble.message} class={`notice ${trouble.level}`}>
          <strong>{trouble.message}</strong>
          {trouble.hint && <span>{trouble.hint}</span>}
          {trouble.link && <a href={trouble.link}>Look</a>}
        </li>
      ))}
    </ul>
  );
}

function Rates({ view }: { view: Overview }) {
  const { rates } = view;
  return (
    <Card title="Last minute">
      <div class="figures">
        <Figure name="started" value={count(rates.startedPerMinute)} class="series-started" />
        <Figure name="completed" value={count(rates.completedPerMinute)} class="series-completed" />
        <Figure name="failed" value={count(rates.failedPerMinute)} class="series-failed" />
      </div>
      <Columns
        label={`Completed and failed orchestrations over five minutes; ${plural(rates.completedPerMinute, "completion")} and ${plural(rates.failedPerMinute, "failure")} in the last minute`}
        series={[
          { key: "completed", values: rates.series.map((point) => point.completed) },
          { key: "failed", values: rates.series.map((point) => point.failed) },
        ]}
      />
      <p class="muted axis">
        <span>5 min ago</span>
        <span>now</span>
      </p>
    </Card>
  );
}

function Latency({ view }: { view: Overview }) {
  const rows = [
    ["Schedule to start", view.latency.scheduleToStart],
    ["Step (turn)", view.latency.step],
    ["Session call", view.latency.call],
  ] as const;
  return (
    <Card title="Latency, last minute">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" class="right">
              p50
            </th>
            <th scope="col" class="right">
              p95
            </th>
            <th scope="col" class="right">
              p99
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, found]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {found ? (
                [found.p50, found.p95, found.p99].map((ms, index) => (
                  <td key={index} class="right number">
                    {latency(ms)}
                  </td>
                ))
              ) : (
                <td class="right muted" colSpan={3}>
                  nothing ran
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Capacity({ view }: { view: Overview }) {
  const { sessions, workers, services } = view;
  return (
    <Card title="Sessions and workers">
      <div class="figures">
        <Figure name="sessions active" value={count(sessions.active)} href="/sessions?phase=active" />
        <Figure name="waiting" value={count(sessions.waiting)} href="/sessions?phase=opening,claimed" />
        <Figure name="workers alive" value={count(workers.alive)} href="/workers" />
      </div>
      <table class="plain">
        <tbody>
          <tr>
            <th scope="row">Session slots</th>
            <td class="right number">
              {count(workers.sessions.used)} of {count(workers.sessions.max)}
            </td>
          </tr>
          <tr>
            <th scope="row">Activity slots</th>
            <td class="right number">
              {count(workers.activities.used)} of {count(workers.activities.max)}
            </td>
          </tr>
          <tr>
            <th scope="row">Orchestrators, watchers, gateways</th>
            <td class="right number">
              {services.orchestrators}, {services.watchers}, {services.gateways}
            </td>
          </tr>
        </tbody>
      </table>
    </Card>
  );
}

function Storage({ view }: { view: Overview }) {
  return (
    <Card title="NATS">
      <div class="figures">
        <Figure name="messages waiting" value={count(view.streams.pending)} href="/queues" />
        <Figure name="dead letters" value={count(view.streams.dead)} href="/queues" />
        <Figure name="stored" value={bytes(view.streams.bytes)} href="/queues" />
      </div>
      <table class="plain">
        <tbody>
          <tr>
            <th scope="row">Server</th>
            <td class="right">
              {view.bus.connected ? `nats-server ${view.bus.version}` : <span class="bad">away</span>}
            </td>
          </tr>
          <tr>
            <th scope="row">Histories with a stream of their own</th>
            <td class="right number">{count(view.streams.ownHistories)}</td>
          </tr>
        </tbody>
      </table>
    </Card>
  );
}

function Figure(props: { name: string; value: string; href?: string; class?: string }) {
  const inside = (
    <>
      <span class="figure-value">{props.value}</span>
      <span class="figure-name">
        {props.class && <span class={`dot ${props.class}`} aria-hidden="true" />}
        {props.name}
      </span>
    </>
  );
  return props.href ? (
    <a class="figure" href={props.href}>
      {inside}
    </a>
  ) : (
    <div class="figure">{inside}</div>
  );
}

export function FirstSteps() {
  const prefix = me.value?.prefix ? `${me.value.prefix}.` : "";
  return (
    <Card title="Start the first orchestration">
      <p>
        Nothing has run here yet. An orchestration starts when somebody publishes its input on a NATS subject:
        from any language, from the command line, or from the <a href="/start">form</a>. The part after{" "}
        <code>orchestrations.</code> is the id you choose.
      </p>
      <Command label="NATS" text={`nats pub ${prefix}orchestrations.my-first.start.hello '{"name":"you"}'`} />
      <Command label="CLI" text={`holdfast start hello --id my-first --input '{"name":"you"}' --wait`} />
      <Command
        label="HTTP"
        text={`curl -X POST ${location.origin}/api/orchestrations/hello -H 'content-type: application/json' -d '{"id":"my-first","input":{"name":"you"}}'`}
      />
    </Card>
  );
}
