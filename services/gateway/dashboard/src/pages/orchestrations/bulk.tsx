/** One action on many orchestrations, a few at a time, with its progress. */
import { useRef, useState } from "preact/hooks";
import { get, post } from "../../api.ts";
import { plural } from "../../format.ts";
import { ask } from "../../parts/dialog.tsx";
import type { InstanceList } from "./instance-list.ts";

const atOnce = 6;

type Verb = "start-again" | "cancel" | "terminate";

const words: Readonly<Record<Verb, { title: string; text: string; button: string }>> = {
  "start-again": {
    title: "Start again",
    text: "Each begins anew with its own input, under a new id. Those that are there stay as they are.",
    button: "Start them again",
  },
  cancel: {
    title: "Cancel",
    text: "Each is asked to stop; its code may clean up. Those that have ended are left as they are.",
    button: "Cancel them",
  },
  terminate: {
    title: "Terminate",
    text: "Each ends at once; its code cannot clean up. Those that have ended are left as they are.",
    button: "Terminate them",
  },
};

interface Progress {
  verb: string;
  done: number;
  failed: number;
  total: number;
  over: boolean;
}

export function BulkBar(props: {
  chosen: ReadonlySet<string>;
  /** How many of the selected orchestrations have not ended. */
  open: number;
  matching: number;
  search: string;
  onDone: () => void;
}) {
  const { chosen, matching, search } = props;
  const [progress, setProgress] = useState<Progress | undefined>();
  const [all, setAll] = useState(false);
  const stop = useRef(false);
  const number = all ? matching : chosen.size;
  if (progress)
    return (
      <Running progress={progress} stop={() => (stop.current = true)} close={() => setProgress(undefined)} />
    );
  if (number === 0) return null;
  const act = (verb: Verb) =>
    ask({
      title: `${words[verb].title} ${plural(number, "orchestration")}?`,
      text: words[verb].text,
      button: words[verb].button,
      danger: verb !== "start-again",
      act: async () => {
        stop.current = false;
        void run(verb, all ? everyMatching(search) : [...chosen], number, stop, setProgress).then(
          props.onDone,
        );
      },
    });
  return (
    <div class="bulk" role="toolbar" aria-label="Act on the chosen orchestrations">
      <span>{plural(number, "orchestration")} chosen</span>
      {!all && matching > chosen.size && (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          Choose all {matching}
        </button>
      )}
      <button type="button" class="button small" onClick={() => act("start-again")}>
        Start again
      </button>
      {(all || props.open > 0) && (
        <>
          <button type="button" class="button small" onClick={() => act("cancel")}>
            Cancel
          </button>
          <button type="button" class="button small danger" onClick={() => act("terminate")}>
            Terminate
          </button>
        </>
      )}
      <button
        type="button"
        class="button small"
        onClick={() => {
          setAll(false);
          props.onDone();
        }}
      >
        Choose none
      </button>
    </div>
  );
}

function Running({ progress, stop, close }: { progress: Progress; stop: () => void; close: () => void }) {
  const { verb, done, failed, total, over } = progress;
  return (
    <div class="bulk" role="status">
      <progress max={total} value={done + failed} aria-label={`Progress of ${verb}`} />
      <span>
        {verb}: {done} of {total} done{failed > 0 ? `, ${failed} refused` : ""}
      </span>
      <button type="button" class="button small" onClick={over ? close : stop}>
        {over ? "Close" : "Stop"}
      </button>
    </div>
  );
}

async function run(
  verb: Verb,
  ids: Iterable<string> | AsyncIterable<string>,
  total: number,
  stop: { current: boolean },
  show: (progress: Progress) => void,
): Promise<void> {
  const progress: Progress = { verb, done: 0, failed: 0, total, over: false };
  const running = new Set<Promise<void>>();
  show({ ...progress });
  for await (const id of ids) {
    if (stop.current) break;
    const one = post(
      `/api/instances/${id}/${verb}`,
      verb === "start-again" ? {} : { reason: "from the dashboard" },
    )
      .then(() => void progress.done++)
      .catch(() => void progress.failed++)
      .finally(() => {
        running.delete(one);
        show({ ...progress });
      });
    running.add(one);
    if (running.size >= atOnce) await Promise.race(running);
  }
  await Promise.all(running);
  show({ ...progress, over: true });
}

async function* everyMatching(search: string): AsyncIterable<string> {
  let cursor = "";
  do {
    const page: InstanceList = await get<InstanceList>(
      `/api/instances?${search}&limit=200${cursor ? `&cursor=${cursor}` : ""}`,
    );
    for (const row of page.rows) yield row.instanceId;
    cursor = page.cursor ?? "";
  } while (cursor !== "");
}
