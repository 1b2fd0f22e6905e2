/** Chunks that running work writes, as they arrive: tokens of a reply, progress. */
import { useEffect, useState } from "preact/hooks";
import type { StreamPage } from "../../api.ts";
import { Card, Scrolled } from "../../parts/basics.tsx";

const most = 5_000;

type Item = StreamPage["items"][number];

/** `of`: show only the chunks of these steps. */
export function StreamPanel({ instanceId, of }: { instanceId: string; of?: readonly number[] }) {
  const [items, setItems] = useState<Item[]>([]);
  useEffect(() => {
    setItems([]);
    // Also for an ended instance: the stream sends all its chunks, then the end.
    const source = new EventSource(`/api/instances/${instanceId}/stream`);
    const waiting: Item[] = [];
    let drawing: ReturnType<typeof setTimeout> | undefined;
    source.addEventListener("chunk", (event: MessageEvent<string>) => {
      waiting.push(JSON.parse(event.data) as Item);
      drawing ??= setTimeout(() => {
        drawing = undefined;
        const fresh = waiting.splice(0);
        setItems((known) => [...known, ...fresh].slice(-most));
      }, 50);
    });
    source.addEventListener("end", () => source.close());
    return () => {
      clearTimeout(drawing);
      source.close();
    };
  }, [instanceId]);
  const shown = of ? items.filter((item) => of.includes(item.of)) : items;
  if (shown.length === 0) return null;
  return (
    <Card title={`Written while running (${shown.length})`}>
      <Scrolled class="json-text wrapped" label="What the work has written">
        {paragraphs(shown).map(({ key, text }) => (
          <p key={key}>
            <span class="muted">#{key} </span>
            {text}
          </p>
        ))}
      </Scrolled>
    </Card>
  );
}

/** Chunks of one run form a paragraph; a repeated attempt or run is shown below the one it repeats. */
function paragraphs(items: StreamPage["items"]): { key: string; text: string }[] {
  const found = new Map<string, string>();
  for (const item of items) {
    const again = item.attempt > 1 || item.run > 1;
    const key = again ? `${item.of} (attempt ${item.attempt}, run ${item.run})` : String(item.of);
    found.set(key, (found.get(key) ?? "") + textOf(item.chunk));
  }
  return [...found].map(([key, text]) => ({ key, text }));
}

const textOf = (chunk: unknown): string => (typeof chunk === "string" ? chunk : `${JSON.stringify(chunk)} `);
