/** How many messages wait in which queue, and the size of every stream. */
import { get, type StreamsView } from "../api.ts";
import { bytes, count, plural } from "../format.ts";
import { Card, Loading, Problem } from "../parts/basics.tsx";
import { NumberCell, NumberHead } from "../parts/table.tsx";
import { useEvery, useLoad } from "../parts/use-load.ts";

type Stream = StreamsView["streams"][number];
type Consumer = Stream["consumers"][number];

/** The purpose of each stream. */
const purposes: Readonly<Record<string, string>> = {
  INBOX:
    "Messages that instances have not taken in yet: starts, signals, results. One reader for each partition.",
  ACTIVITIES: "Tasks for any worker that has the activity. One reader for each activity.",
  CLAIMS: "Sessions that wait for a worker. One reader for each session type.",
  SESSIONS: "Calls for the worker that holds the session. One reader for each worker.",
};

/** What the other streams keep; a bucket is named by its last part. */
const contents: readonly (readonly [ending: string, keeps: string])[] = [
  ["TIMERS", "timers and schedules that are not due yet"],
  ["ASIDE", "messages of parked instances, until they go on"],
  ["STREAMS", "what activities and calls write while they run"],
  ["DEAD", "dead letters"],
  ["AUDIT", "who did what over HTTP"],
  ["OBJ_blobs", "big payloads, checkpoints and bytes of sessions"],
  ["leases", "leases of sessions"],
  ["engine", "leases of partitions and services"],
  ["workers", "the live workers"],
  ["services", "the live orchestrators, watchers and gateways"],
  ["heartbeats", "details of running activities' heartbeats"],
  ["sessions", "what is known of each session"],
  ["limits", "rates of activities"],
  ["instances", "what is known of each instance"],
  ["settings", "settings of the whole installation"],
];

export function Streams() {
  const { data, error, reload } = useLoad((signal) => get<StreamsView>("/api/queues", signal), []);
  useEvery(2_500, reload);
  const queues = (data?.streams ?? []).filter((stream) => stream.role === "queue");
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      {!data && error === undefined && <Loading />}
      {queues.map((stream) => (
        <Queue key={stream.name} stream={stream} />
      ))}
      {data && <Storage view={data} />}
    </>
  );
}

function Queue({ stream }: { stream: Stream }) {
  const purpose = Object.entries(purposes).find(([name]) => stream.name.endsWith(name))?.[1];
  const inOrder = [...stream.consumers].sort(
    (a, b) =>
      b.pending + b.ackPending - a.pending - a.ackPending ||
      a.name.localeCompare(b.name, "en", { numeric: true }),
  );
  const busy = inOrder.filter(isBusy).slice(0, 40);
  const idle = inOrder.filter((consumer) => !isBusy(consumer));
  return (
    <Card
      title={stream.name}
      aside={
        <span class="muted">
          {plural(stream.messages, "message")}, {bytes(stream.bytes)}
        </span>
      }
    >
      {purpose && <p class="muted">{purpose}</p>}
      {stream.consumers.length === 0 && (
        <p class="muted">
          {stream.messages > 0
            ? "No service reads it: the messages in it wait."
            : "No service has read it yet."}
        </p>
      )}
      {busy.length > 0 && <Consumers of={stream.name} list={busy} />}
      {idle.length > 0 && (
        <details>
          <summary>{plural(idle.length, "reader")} with nothing to do</summary>
          <Consumers of={stream.name} list={idle.slice(0, 100)} />
        </details>
      )}
    </Card>
  );
}

const isBusy = ({ pending, ackPending, redelivered }: Consumer): boolean =>
  pending + ackPending + redelivered > 0;

function Consumers({ of, list }: { of: string; list: readonly Consumer[] }) {
  return (
    <section class="table-wrap" aria-label={`Readers of ${of}`}>
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Reader</th>
            <th scope="col">Reads</th>
            <NumberHead>Waiting</NumberHead>
            <NumberHead>In hand</NumberHead>
            <NumberHead>Redelivered</NumberHead>
          </tr>
        </thead>
        <tbody>
          {list.map((consumer) => (
            <tr key={consumer.name}>
              <td class="title">
                <code>{consumer.name}</code>
              </td>
              <td class="wide" data-label="Reads">
                <code class="muted">{consumer.filter}</code>
              </td>
              <td class={`right number ${consumer.pending > 1000 ? "bad" : ""}`} data-label="Waiting">
                {count(consumer.pending)}
              </td>
              <NumberCell label="In hand">{count(consumer.ackPending)}</NumberCell>
              <NumberCell label="Redelivered">{count(consumer.redelivered)}</NumberCell>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Storage({ view }: { view: StreamsView }) {
  const others = view.streams.filter(({ role }) => role !== "queue" && role !== "history");
  const histories = view.streams.filter(({ role }) => role === "history");
  const sum = (of: (stream: Stream) => number) => histories.reduce((total, stream) => total + of(stream), 0);
  return (
    <Card
      title="Storage"
      aside={view.stored !== undefined && <span class="muted">{bytes(view.stored)} in the account</span>}
    >
      <section class="table-wrap" aria-label="Sizes of streams">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Stream</th>
              <th scope="col">Keeps</th>
              <NumberHead>Messages</NumberHead>
              <NumberHead>Size</NumberHead>
              <NumberHead>Copies</NumberHead>
            </tr>
          </thead>
          <tbody>
            <tr>
              <td class="title">{histories.length} shared history streams</td>
              <td class="muted wide" data-label="Keeps">
                histories of instances
              </td>
              <NumberCell label="Messages">{count(sum((stream) => stream.messages))}</NumberCell>
              <NumberCell label="Size">{bytes(sum((stream) => stream.bytes))}</NumberCell>
              <NumberCell label="Copies">{histories[0]?.replicas ?? "–"}</NumberCell>
            </tr>
            {others.map((stream) => (
              <tr key={stream.name}>
                <td class="title">
                  <code>{stream.name}</code>
                </td>
                <td class="muted wide" data-label="Keeps">
                  {contents.find(([ending]) => stream.name.endsWith(ending))?.[1]}
                </td>
                <NumberCell label="Messages">{count(stream.messages)}</NumberCell>
                <NumberCell label="Size">{bytes(stream.bytes)}</NumberCell>
                <NumberCell label="Copies">{stream.replicas}</NumberCell>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <p class="muted">
        Beside these, {plural(view.ownHistories, "instance")} {view.ownHistories === 1 ? "has" : "have"} a
        history stream of {view.ownHistories === 1 ? "its" : "their"} own.
      </p>
    </Card>
  );
}
