/** The events since the last read, in the order they were recorded. */
import type { HistoryEntry } from "../../../shared/sdk/index.ts";
import { detailsOf, eventStyle } from "../render/instances.ts";
import { type Paint, plain, type Style } from "../terminal/paint.ts";
import { oneLine, time } from "../terminal/text.ts";

type InstanceEvent = { instanceId: string } & HistoryEntry;

export class NewEvents {
  readonly #shown = new Map<string, number>();

  since(histories: ReadonlyMap<string, readonly HistoryEntry[]>): InstanceEvent[] {
    const news: InstanceEvent[] = [];
    for (const [instanceId, entries] of histories) {
      const shown = this.#shown.get(instanceId) ?? 0;
      news.push(...entries.slice(shown).map((entry) => ({ instanceId, ...entry })));
      this.#shown.set(instanceId, Math.max(shown, entries.length));
    }
    return news.sort((a, b) => a.at - b.at);
  }
}

export function newsLine({ instanceId, ...entry }: InstanceEvent, paint: Paint = plain): string {
  const details = detailsOf(entry);
  const kind = paint(eventStyle(entry), entry.kind);
  const line = `${time(entry.at)}  ${instanceId}  ${kind}${details === "" ? "" : `  ${oneLine(details)}`}`;
  const mark = markOf(entry);
  return mark === undefined ? line : `${line}  ${paint(mark.style, mark.text)}`;
}

/** Marks a session's loss and its next holder, for which people watch a session. */
function markOf(entry: HistoryEntry): { text: string; style: Style } | undefined {
  if (entry.kind === "session.lost") return { text: "✗ lost", style: "red" };
  if (entry.kind === "session.activated" && entry.on.attachment > 1)
    return { text: "↻ claimed anew", style: "green" };
  return undefined;
}
