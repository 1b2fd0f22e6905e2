/** Schedules: what they start, when next, and how the runs went. */
import { useEffect } from "preact/hooks";
import { get, mayAct, post, type ScheduleView } from "../api.ts";
import { count } from "../format.ts";
import { Card, Empty, Problem, When } from "../parts/basics.tsx";
import { ask } from "../parts/dialog.tsx";
import { Json } from "../parts/json.tsx";
import { useLoad } from "../parts/use-load.ts";

const lookEveryMs = 2_000;

export function SchedulesPage({ only }: { only?: string }) {
  const { data, error, reload } = useLoad(
    async (signal) =>
      only === undefined
        ? (await get<{ rows: ScheduleView[] }>("/api/schedules?all=true", signal)).rows
        : [await get<ScheduleView>(`/api/schedules/${encodeURIComponent(only)}`, signal)],
    [only],
  );
  useEffect(() => {
    const timer = setInterval(reload, lookEveryMs);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <>
      <h1>{only === undefined ? "Schedules" : `Schedule ${only}`}</h1>
      {error !== undefined && <Problem error={error} />}
      {data?.length === 0 && (
        <Empty title="No schedules">
          <p class="muted">
            <code>holdfast schedule create nightly report --cron "0 2 * * *"</code> makes one.
          </p>
        </Empty>
      )}
      {data?.map((schedule) => (
        <Schedule
          key={schedule.scheduleId}
          schedule={schedule}
          whole={only !== undefined}
          onChange={reload}
        />
      ))}
    </>
  );
}

interface Shown {
  schedule: ScheduleView;
  whole: boolean;
  onChange: () => void;
}

function Schedule({ schedule, whole, onChange }: Shown) {
  const { scheduleId, status, spec, note, error, next, runs, skipped, missed, waiting } = schedule;
  return (
    <Card title={scheduleId}>
      <p>
        <span class={`badge badge-${badges[status]}`}>{status}</span> starts{" "}
        <code>{spec?.orchestration ?? "?"}</code> {whenOf(schedule)}
        {note !== undefined && <span class="muted"> · {note}</span>}
      </p>
      {error !== undefined && <p class="bad">{error}</p>}
      <p class="muted">
        {count(runs)} runs, {count(skipped)} skipped, {count(missed)} missed, {count(waiting)} waiting
        {next[0] !== undefined && (
          <>
            {" "}
            · next <When at={next[0]} />
          </>
        )}
        {!whole && (
          <>
            {" "}
            · <a href={`/schedules/${scheduleId}`}>details</a>
          </>
        )}
      </p>
      {whole && <Details schedule={schedule} />}
      {mayAct() && (status === "active" || status === "paused") && (
        <Actions schedule={schedule} whole={whole} onChange={onChange} />
      )}
    </Card>
  );
}

const badges = {
  pending: "pending",
  active: "running",
  paused: "parked",
  finished: "completed",
  failed: "failed",
} as const;

function whenOf({ spec }: ScheduleView): string {
  if (!spec) return "";
  if (spec.cron !== undefined) return `${[spec.cron].flat().join("; ")} (${spec.timeZone ?? "UTC"})`;
  if (spec.every !== undefined) return `every ${spec.every}${typeof spec.every === "number" ? " ms" : ""}`;
  return `at ${[spec.at ?? []].flat().map(String).join(", ")}`;
}

function Details({ schedule: { spec, next, running, recent } }: { schedule: ScheduleView }) {
  return (
    <>
      <h3>Next times</h3>
      {next.length === 0 && <p class="muted">None is to come.</p>}
      <ul>
        {next.map((at) => (
          <li key={at}>
            <When at={at} />
          </li>
        ))}
      </ul>
      <h3>Latest runs</h3>
      {recent.length === 0 && <p class="muted">None yet.</p>}
      <ul>
        {recent.map(({ instanceId, at }) => (
          <li key={instanceId}>
            <a href={`/orchestrations/${instanceId}`}>{instanceId}</a> <When at={at} />
            {running.some((run) => run.instanceId === instanceId) && <span class="muted"> runs</span>}
          </li>
        ))}
      </ul>
      <details>
        <summary>The schedule</summary>
        <Json value={spec} label="The schedule" />
      </details>
    </>
  );
}

function Actions({ schedule: { scheduleId, status }, onChange }: Shown) {
  const to = (verb: string, body: unknown = {}) =>
    post(`/api/schedules/${scheduleId}/${verb}`, body).then(onChange);
  const button = (name: string, act: () => void, danger = false) => (
    <button type="button" class={`button small ${danger ? "danger" : ""}`} onClick={act}>
      {name}
    </button>
  );
  return (
    <div class="letter-actions">
      {button("Run now…", () =>
        ask({
          title: `Run ${scheduleId} now?`,
          text: "Beside its times; whether it may run beside another run is for its overlap policy to say.",
          button: "Run it",
          commands: () => [{ label: "CLI", text: `holdfast schedule trigger ${scheduleId}` }],
          done: "Triggered",
          act: () => to("trigger"),
        }),
      )}
      {status === "active"
        ? button("Pause…", () =>
            ask({
              title: `Pause ${scheduleId}?`,
              text: "It starts nothing until it is resumed. What comes meanwhile is left out.",
              button: "Pause it",
              fields: [{ name: "note", label: "Note (optional)" }],
              commands: () => [{ label: "CLI", text: `holdfast schedule pause ${scheduleId}` }],
              done: "Paused",
              act: ({ note = "" }) => to("pause", note ? { note } : {}),
            }),
          )
        : button("Resume…", () =>
            ask({
              title: `Resume ${scheduleId}?`,
              text: "It goes on with its next time.",
              button: "Resume it",
              commands: () => [{ label: "CLI", text: `holdfast schedule resume ${scheduleId}` }],
              done: "Resumed",
              act: () => to("resume"),
            }),
          )}
      {button(
        "Delete…",
        () =>
          ask({
            title: `Delete ${scheduleId}?`,
            text: "It starts nothing more. What runs goes on.",
            button: "Delete it",
            danger: true,
            commands: () => [{ label: "CLI", text: `holdfast schedule delete ${scheduleId}` }],
            done: "Deleted",
            act: () => to("delete"),
          }),
        true,
      )}
    </div>
  );
}
