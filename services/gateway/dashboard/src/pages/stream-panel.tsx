/** What running work writes out, as it comes: tokens of a reply, progress. */
import { useEffect, useState } from "preact/hooks";
import type { StreamPage } from "../api.ts";
import { Card, Scrolled } from "../parts/basics.tsx";

const most = 5_000;

type Item = StreamPage["items"][number];

export function StreamPanel({ instanceId }: { instanceId: string }) {
  const [items, setItems] = useState<Item[]>([]);
  useEffect(() => {
    setItems([]);
    // Also where it has ended: all of it comes, and then the end.
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
  if (items.length === 0) return null;
  return (
    <Card title={`Written while running (${items.length})`}>
      <Scrolled class="json-text wrapped" label="What the work has written">
        {paragraphs(items).map(({ key, text }) => (
          <p key={key}>
            <span class="muted">#{key} </span>
            {text}
          </p>
        ))}
      </Scrolled>
    </Card>
  );
}

/** Chunks of one run belong together; an attempt or run that began anew stands below the one it repeats. */
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
