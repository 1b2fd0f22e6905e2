/** The first page: problems, throughput, latency, capacity and storage. */
import type { Overview } from "../../api.ts";
import { bytes, count, latency, plural, timeOfDay } from "../../format.ts";
import { overview } from "../../live.ts";
import { Badge, Card, Loading, Meter, Prose } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Columns } from "../../parts/sparkline.tsx";
import { NumberHead } from "../../parts/table.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { LatestFailures } from "./latest-failures.tsx";

const statuses = ["running", "pending", "parked", "completed", "failed", "cancelled", "terminated"] as const;

export function OverviewPage() {
  const view = overview.value;
  if (!view)
    return (
      <>
        <h1>Overview</h1>
        <Loading />
      </>
    );
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
      {(view.counts.failed ?? 0) > 0 && <LatestFailures failed={view.counts.failed ?? 0} />}
    </>
  );
}

function Troubles({ view }: { view: Overview }) {
  if (view.troubles.length === 0) {
    return (
      <p class="allgood" role="status">
        <Icon name="good" size={16} /> Everything is as it should be.
      </p>
    );
  }
  return (
    <ul class="troubles" aria-label="What needs attention">
      {view.troubles.map((trouble) => (
        <li key={trouble.message} class={`notice ${trouble.level}`}>
          <strong>{trouble.message}</strong>
          {trouble.hint && (
            <span>
              <Prose text={trouble.hint} />
            </span>
          )}
          {trouble.link && <a href={trouble.link}>Show</a>}
        </li>
      ))}
    </ul>
  );
}

function Rates({ view }: { view: Overview }) {
  const { rates } = view;
  return (
    <Card title="Throughput, last minute">
      <div class="figures">
        <Figure
          name="started"
          value={count(rates.startedPerMinute)}
          per={rates.startedPerMinute}
          class="series-started"
        />
        <Figure
          name="completed"
          value={count(rates.completedPerMinute)}
          per={rates.completedPerMinute}
          class="series-completed"
        />
        <Figure
          name="failed"
          value={count(rates.failedPerMinute)}
          per={rates.failedPerMinute}
          class="series-failed"
        />
      </div>
      <Columns
        label={`Completed and failed orchestrations over five minutes; ${plural(rates.completedPerMinute, "completion")} and ${plural(rates.failedPerMinute, "failure")} in the last minute`}
        titles={rates.series.map(
          (point) =>
            `${timeOfDay(point.at).slice(0, 8)}: ${point.started} started, ${point.completed} completed, ${point.failed} failed`,
        )}
        series={[
          { key: "completed", values: rates.series.map((point) => point.completed) },
          { key: "failed", values: rates.series.map((point) => point.failed) },
        ]}
        line={{ key: "started", values: rates.series.map((point) => point.started) }}
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
            <NumberHead>p50</NumberHead>
            <NumberHead>p95</NumberHead>
            <NumberHead>p99</NumberHead>
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
  const { sessions, workers, services, fleet } = view;
  const versions = Object.entries(fleet.versions).map(([version, n]) => `${version} (${n})`);
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
            <td class="right">
              <Meter {...workers.sessions} label="Session slots" />
            </td>
          </tr>
          <tr>
            <th scope="row">Activity slots</th>
            <td class="right">
              <Meter {...workers.activities} label="Activity slots" />
            </td>
          </tr>
          <tr>
            <th scope="row">Services</th>
            <td class="right">
              {[
                plural(services.orchestrators, "orchestrator"),
                plural(services.watchers, "watcher"),
                plural(services.gateways, "gateway"),
              ].join(", ")}
            </td>
          </tr>
          <tr>
            <th scope="row">Versions</th>
            <td class="right">{versions.join(", ") || "–"}</td>
          </tr>
          {fleet.heldBackBy.length > 0 && (
            <tr>
              <th scope="row">Generation of events</th>
              <td class="right">
                {fleet.written} instead of {fleet.newest}, held back by{" "}
                {fleet.heldBackBy.map(({ kind, id }) => `${kind} ${id}`).join(", ")}
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </Card>
  );
}

function Storage({ view }: { view: Overview }) {
  const { streams, bus } = view;
  return (
    <Card
      title="Queues and storage"
      aside={
        <span class={bus.connected ? "muted" : "bad"}>
          {bus.connected ? `nats-server ${bus.version}` : "NATS is away"}
        </span>
      }
    >
      <div class="figures">
        <Figure name="messages waiting" value={count(streams.pending)} href="/queues" />
        <Figure name="dead letters" value={count(streams.dead)} href="/queues" />
        <Figure name="stored" value={bytes(streams.bytes)} href="/queues" />
      </div>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <NumberHead>waiting</NumberHead>
            <NumberHead>in hand</NumberHead>
            <NumberHead>size</NumberHead>
          </tr>
        </thead>
        <tbody>
          {streams.queues.map((queue) => (
            <tr key={queue.name}>
              <th scope="row">
                <code>{queue.name}</code>
              </th>
              <td class={`right number ${queue.waiting > 1000 ? "bad" : ""}`}>{count(queue.waiting)}</td>
              <td class="right number">{count(queue.inHand)}</td>
              <td class="right number">{bytes(queue.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** `per`: a rate per minute, shown per second from one per second on. */
function Figure(props: { name: string; value: string; href?: string; class?: string; per?: number }) {
  const perSecond = (props.per ?? 0) / 60;
  const inside = (
    <>
      <span class="figure-value">
        {props.value}
        {perSecond >= 1 && <span class="figure-per"> {perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s</span>}
      </span>
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
