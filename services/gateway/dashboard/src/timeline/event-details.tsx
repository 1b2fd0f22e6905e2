/** Details of one shape of the timeline: a card at the pointer in short, below the picture in full. */

import type { InstanceTimeline, Work } from "../../../../../shared/timeline/index.ts";
import { failureText, shortEpoch } from "../../../../../shared/wording/index.ts";
import { absolute, duration } from "../format.ts";
import { Badge, Facts } from "../parts/basics.tsx";
import { Json } from "../parts/json.tsx";

interface EventDetails {
  title: string;
  state?: string;
  lines: string[];
  work?: Work;
}

/** Undefined if the picture has no such event. */
export function detailsOf(model: InstanceTimeline, id: number, end: number): EventDetails | undefined {
  const work = model.work.find((one) => one.id === id);
  if (work) return workDetails(work, model, end);
  for (const { sessionId, marks } of model.sessions) {
    const mark = marks.find((one) => one.id === id);
    if (mark) return { title: `session ${sessionId}: ${mark.text}`, lines: [placeOf(mark.at, model)] };
  }
  const received = model.received.find((one) => one.id === id);
  if (!received) return undefined;
  const { kind, name, at } = received;
  return { title: kind === name ? kind : `${kind} ${name}`, lines: [placeOf(at, model)] };
}

const placeOf = (at: number, model: InstanceTimeline): string =>
  `+${duration(at - model.from)} · ${absolute(at)}`;

function workDetails(work: Work, model: InstanceTimeline, end: number): EventDetails {
  const took = duration((work.to ?? end) - work.from);
  const waited =
    work.startedAt === undefined ? "" : `, of it ${duration(work.startedAt - work.from)} before it began`;
  const where = [
    work.workerId,
    work.epoch === undefined ? undefined : `epoch ${shortEpoch(work.epoch)}`,
    work.queue === undefined ? undefined : `queue ${work.queue}`,
  ].filter((part) => part !== undefined);
  return {
    title: `${work.kind} ${work.childId ?? work.name}`,
    state: work.state === "open" ? "running" : work.state,
    lines: [
      `${work.to === undefined ? "since" : "took"} ${took}${waited}`,
      ...(where.length > 0 ? [where.join(" · ")] : []),
      ...(work.attempts.length > 0 ? [`${work.attempts.length} failed attempts`] : []),
      ...(work.failure === undefined ? [] : [failureText(work.failure)]),
      placeOf(work.from, model),
    ],
    work,
  };
}

/** Follows the pointer; the table below shows the same details. */
export function HoverCard({ details, x, y }: { details: EventDetails; x: number; y: number }) {
  return (
    <div class="hover-card" style={{ left: `${x}px`, top: `${y}px` }} aria-hidden="true">
      <strong>{details.title}</strong> {details.state && <Badge status={details.state} />}
      {details.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}

export function SelectedEvent(props: {
  details: EventDetails;
  id: number;
  /** Undefined if the shape is not a child, or a child that cannot be expanded. */
  inside: { shown: boolean; toggle: () => void } | undefined;
  close: () => void;
}) {
  const { details, id, inside } = props;
  const { work } = details;
  const input = work?.input && "json" in work.input ? work.input.json : undefined;
  return (
    <section class="selected-event" aria-label="Selected event">
      <header>
        <h3>
          #{id} {details.title}
        </h3>
        {details.state && <Badge status={details.state} />}
        <span class="chips">
          {inside && (
            <button type="button" class="button small" aria-pressed={inside.shown} onClick={inside.toggle}>
              {inside.shown ? "Hide its timeline" : "Show its timeline here"}
            </button>
          )}
          {work?.childId && (
            <a class="button small" href={`/orchestrations/${work.childId}`}>
              Open {work.childId}
            </a>
          )}
          {work?.sessionId && (
            <a class="button small" href={`/sessions/${work.sessionId}`}>
              Its session
            </a>
          )}
          <button type="button" class="button small" onClick={props.close}>
            Close
          </button>
        </span>
      </header>
      <ul class="sentences">
        {details.lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {work && work.attempts.length > 0 && (
        <Facts
          facts={work.attempts.map(({ at, attempt, error }): [string, string] => [
            `Attempt ${attempt}`,
            `${failureText(error)}, ${absolute(at)}`,
          ])}
        />
      )}
      {input !== undefined && <Json value={input} label="Input of this step" />}
    </section>
  );
}
