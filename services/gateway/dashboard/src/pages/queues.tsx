import { useEffect, useState } from "preact/hooks";
import { type DeadLetterView, get, mayAct, post } from "../api.ts";
import { bytes, count } from "../format.ts";
import { useLive } from "../live.ts";
import { Card, Empty, Problem, Scrolled, When } from "../parts/basics.tsx";
import { ask } from "../parts/dialog.tsx";
import { Json } from "../parts/json.tsx";
import { toast } from "../parts/toasts.tsx";
import { useLoad } from "../parts/use-load.ts";
import { Streams } from "./streams.tsx";

interface Letters {
  letters: DeadLetterView[];
  total: number;
  next?: number;
}

export function QueuesPage() {
  return (
    <>
      <h1>Queues and dead letters</h1>
      <DeadLetters />
      <Streams />
    </>
  );
}

function DeadLetters() {
  const [before, setBefore] = useState<number | undefined>();
  const { data, error, reload } = useLoad(
    (signal) => get<Letters>(`/api/dead?limit=25${before ? `&before=${before}` : ""}`, signal),
    [before],
  );
  const [known, setKnown] = useState(0);
  useLive({ overview: (view) => setKnown(view.streams.dead), resync: reload }, [reload]);
  useEffect(reload, [known]);
  const letters = data?.letters ?? [];
  return (
    <Card title={`Dead letters${data && data.total > 0 ? ` (${count(data.total)})` : ""}`}>
      {error !== undefined && <Problem error={error} />}
      {data && letters.length === 0 && (
        <Empty title="No dead letters">
          <p class="muted">
            Messages that cannot be used are kept here with their reason, instead of being lost.
          </p>
        </Empty>
      )}
      <ul class="letters">
        {letters.map((letter) => (
          <Letter key={letter.seq} letter={letter} onGone={reload} />
        ))}
      </ul>
      {(data?.next || before) && (
        <nav class="pager" aria-label="Pages of dead letters">
          {before && (
            <button type="button" class="button small" onClick={() => setBefore(undefined)}>
              To the latest
            </button>
          )}
          {data?.next && (
            <button type="button" class="button small" onClick={() => setBefore(data.next)}>
              Older
            </button>
          )}
        </nav>
      )}
    </Card>
  );
}

function Letter({ letter, onGone }: { letter: DeadLetterView; onGone: () => void }) {
  const retry = () =>
    post<{ subject: string }>(`/api/dead/${letter.seq}/retry`)
      .then(({ subject }) => toast(`Sent again to ${subject}`))
      .catch((error: unknown) => toast(error instanceof Error ? error.message : String(error)))
      .then(onGone);
  return (
    <li class="letter">
      <div class="letter-head">
        <strong>{letter.reason.code}</strong>
        <span>{letter.reason.message}</span>
      </div>
      <p class="muted">
        {letter.what} <code>{letter.id}</code> on <code>{letter.subject}</code>, <When at={letter.at} />,{" "}
        {bytes(letter.bytes)}
      </p>
      <details>
        <summary>Body and headers</summary>
        {letter.text === undefined ? (
          <p class="muted">Not text.</p>
        ) : (
          <Scrolled class="json-text" label="Body of the letter">
            <pre>{letter.text}</pre>
          </Scrolled>
        )}
        <Json value={letter.headers} label="Headers of the letter" />
      </details>
      {mayAct() && (
        <div class="letter-actions">
          <button type="button" class="button small" onClick={retry}>
            Retry
          </button>
          {mayAct("admin") && (
            <button type="button" class="button small danger" onClick={() => discard(letter, onGone)}>
              Discard…
            </button>
          )}
        </div>
      )}
    </li>
  );
}

function discard(letter: DeadLetterView, onGone: () => void): void {
  ask({
    title: `Discard dead letter ${letter.seq}?`,
    text: "It is removed for good.",
    button: "Discard it",
    danger: true,
    commands: () => [{ label: "CLI", text: `holdfast dead discard ${letter.seq}` }],
    done: "Discarded",
    act: () => post(`/api/dead/${letter.seq}/discard`).then(onGone),
  });
}
