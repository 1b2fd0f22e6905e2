/** What running work writes out, as it comes: tokens of a reply, progress. */
import { useEffect, useRef, useState } from "preact/hooks";
import { get, type StreamPage } from "../api.ts";
import { Card, Scrolled } from "../parts/basics.tsx";

const most = 5_000;

export function StreamPanel({ instanceId, live }: { instanceId: string; live: boolean }) {
  const [items, setItems] = useState<StreamPage["items"]>([]);
  const offset = useRef(0);
  useEffect(() => {
    let over = false;
    const look = async () => {
      const page = await get<StreamPage>(`/api/instances/${instanceId}/stream?after=${offset.current}`).catch(
        () => undefined,
      );
      if (over || !page || page.items.length === 0) return;
      offset.current = page.offset;
      setItems((known) => [...known, ...page.items].slice(-most));
    };
    void look();
    const timer = live ? setInterval(look, 1000) : undefined;
    return () => {
      over = true;
      clearInterval(timer);
    };
  }, [instanceId, live]);
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

/** Chunks of one run belong together; a run that began anew replaces nothing, it stands below. */
function paragraphs(items: StreamPage["items"]): { key: string; text: string }[] {
  const found = new Map<string, string>();
  for (const item of items) {
    const key = item.run > 1 ? `${item.of} (run ${item.run})` : String(item.of);
    found.set(key, (found.get(key) ?? "") + textOf(item.chunk));
  }
  return [...found].map(([key, text]) => ({ key, text }));
}

const textOf = (chunk: unknown): string => (typeof chunk === "string" ? chunk : `${JSON.stringify(chunk)} `);
