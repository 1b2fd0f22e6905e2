/** Schedules: what they start, when next, and how the runs went. */
import { get, mayAct, post, type ScheduleView } from "../api.ts";
import { absolute, count, duration, wallTime } from "../format.ts";
import { Card, Command, Empty, Facts, Id, Loading, PageHead, Problem, When } from "../parts/basics.tsx";
import { ask } from "../parts/dialog.tsx";
import { Json } from "../parts/json.tsx";
import { ActionsHead, NumberCell, NumberHead } from "../parts/table.tsx";
import { useEvery, useLoad } from "../parts/use-load.ts";

const lookEveryMs = 2_000;

export function SchedulesPage({ only }: { only?: string }) {
  const { data, error, reload } = useLoad(
    async (signal) =>
      only === undefined
        ? (await get<{ rows: ScheduleView[] }>("/api/schedules?all=true", signal)).rows
        : [await get<ScheduleView>(`/api/schedules/${encodeURIComponent(only)}`, signal)],
    [only],
  );
  useEvery(lookEveryMs, reload);
  return (
    <>
      {only === undefined ? (
        <h1>Schedules</h1>
      ) : (
        <PageHead list={["/schedules", "Schedules"]} kind="Schedule" id={only}>
          {data?.[0] && mayAct() && <Actions schedule={data[0]} onChange={reload} alone />}
        </PageHead>
      )}
      {error !== undefined && <Problem error={error} />}
      {!data && error === undefined && <Loading />}
      {data?.length === 0 && (
        <Empty title="No schedules">
          <p class="muted">
            <code>holdfast schedule create nightly report --cron "0 2 * * *"</code> makes one.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && only === undefined && (
        <ScheduleTable rows={data} onChange={reload} />
      )}
      {only !== undefined && data?.[0] && <Schedule schedule={data[0]} />}
    </>
  );
}

interface Shown {
  schedule: ScheduleView;
  onChange: () => void;
  /** True on the schedule's own page, where buttons are bigger than in a list. */
  alone?: boolean;
}

function ScheduleTable({ rows, onChange }: { rows: readonly ScheduleView[]; onChange: () => void }) {
  return (
    <section class="table-wrap" aria-label="Schedules">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Schedule</th>
            <th scope="col">State</th>
            <th scope="col">Starts</th>
            <th scope="col">When</th>
            <th scope="col">Next</th>
            <th scope="col">Latest run</th>
            <NumberHead>Timed runs</NumberHead>
            <ActionsHead />
          </tr>
        </thead>
        <tbody>
          {rows.map((schedule) => (
            <tr key={schedule.scheduleId}>
              <td class="title">
                <Id href={`/schedules/${schedule.scheduleId}`}>{schedule.scheduleId}</Id>
              </td>
              <td data-label="State">
                <span title={schedule.note}>
                  <State status={schedule.status} />
                </span>
              </td>
              <td data-label="Starts">{schedule.spec?.orchestration ?? "–"}</td>
              <td data-label="When">{whenOf(schedule)}</td>
              <td data-label="Next">
                <When at={schedule.next[0]} />
              </td>
              <td data-label="Latest run">
                <When at={schedule.recent[0]?.at} />
              </td>
              <NumberCell label="Timed runs">{count(schedule.runs)}</NumberCell>
              {mayAct() && (
                <td class="right">
                  <Actions schedule={schedule} onChange={onChange} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const State = ({ status }: { status: ScheduleView["status"] }) => (
  <span class={`badge badge-${badges[status]}`}>{status}</span>
);

function Schedule({ schedule }: { schedule: ScheduleView }) {
  const { status, spec, note, error, runs, skipped, missed, waiting } = schedule;
  return (
    <>
      <Card>
        <Facts
          flow
          facts={[
            ["State", <State status={status} />],
            ["Starts", spec?.orchestration ?? "–"],
            ["When", whenOf(schedule)],
            ["Timed runs", count(runs)],
            ["Skipped", count(skipped)],
            ["Missed", count(missed)],
            ["Waiting", count(waiting)],
            ["Kept by", <Id href={`/orchestrations/${keeper(schedule)}`}>{keeper(schedule)}</Id>],
          ]}
        />
        {note !== undefined && <p class="muted">{note}</p>}
        {error !== undefined && <p class="bad">{error}</p>}
      </Card>
      <Details schedule={schedule} />
    </>
  );
}

const keeper = ({ scheduleId }: ScheduleView): string => `schedule-${scheduleId}`;

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
  if (spec.every !== undefined)
    return `every ${typeof spec.every === "number" ? duration(spec.every) : spec.every}`;
  const times = [spec.at ?? []].flat().map((at) => wallTime(new Date(at).getTime()));
  return `at ${times.slice(0, 3).join("; ")}${times.length > 3 ? `; and ${times.length - 3} more` : ""}`;
}

/** The time zone in which a schedule's times are shown; undefined: the reader's. */
const zoneOf = ({ cron, timeZone }: NonNullable<ScheduleView["spec"]>): string | undefined =>
  cron === undefined ? timeZone : (timeZone ?? "UTC");

function Details({ schedule: { scheduleId, spec, next, running, recent } }: { schedule: ScheduleView }) {
  const zone = spec && zoneOf(spec);
  return (
    <>
      <div class="grid two">
        <Card title="Next times" aside={<span class="muted">{zone ?? "your time zone"}</span>}>
          {next.length === 0 && <p class="muted">None is to come.</p>}
          <ul class="times">
            {next.map((at) => (
              <li key={at}>
                <span class="number" title={absolute(at)}>
                  {wallTime(at, zone)}
                </span>{" "}
                <span class="muted">
                  <When at={at} />
                </span>
              </li>
            ))}
          </ul>
        </Card>
        <Card title="Latest runs">
          {recent.length === 0 && <p class="muted">None yet.</p>}
          <ul class="times">
            {recent.map(({ instanceId, at }) => (
              <li key={instanceId}>
                <Id href={`/orchestrations/${instanceId}`}>{instanceId}</Id>{" "}
                <span class="muted">
                  <When at={at} />
                  {running.some((run) => run.instanceId === instanceId) && ", running"}
                </span>
              </li>
            ))}
          </ul>
        </Card>
      </div>
      <Card title="As it was defined">
        <Json value={spec} label="The schedule" />
      </Card>
      <Card title="The same from a terminal">
        <Command label="See it" text={`holdfast schedule show ${scheduleId}`} />
        <Command label="Run it now" text={`holdfast schedule trigger ${scheduleId}`} />
      </Card>
    </>
  );
}

function Actions({ schedule: { scheduleId, status }, onChange, alone = false }: Shown) {
  if (status !== "active" && status !== "paused") return null;
  const to = (verb: string, body: unknown = {}) =>
    post(`/api/schedules/${scheduleId}/${verb}`, body).then(onChange);
  const button = (name: string, act: () => void, danger = false) => (
    <button type="button" class={`button ${alone ? "" : "small"} ${danger ? "danger" : ""}`} onClick={act}>
      {name}
    </button>
  );
  return (
    <div class={alone ? "actions" : "row-actions"}>
      {button("Run now…", () =>
        ask({
          title: `Run ${scheduleId} now?`,
          text: "In addition to its times; its overlap policy decides whether it may run beside another run.",
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
              text: "It starts nothing until it is resumed. Times that pass meanwhile are left out.",
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
