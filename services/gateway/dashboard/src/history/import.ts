/** Reads a history from a file, checked as far as displaying it requires. Pure. */
import type { HistoryEvent } from "../../../../../schemas/index.ts";
import type { DatedEvent, HistoryPage } from "../../../routes/history.ts";

export interface Imported {
  instanceId: string;
  executions: Map<number, DatedEvent[]>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Accepts the file of "Download history", or the lines of `holdfast history --export`. */
export function readHistoryFile(text: string): Imported {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("The file is not JSON.");
  }
  const list = Array.isArray(value) ? value : isObject(value) ? value.commits : undefined;
  if (!Array.isArray(list) || list.length === 0) {
    throw new Error('The file has no "commits": is it the one of “Download history”?');
  }
  const executions = new Map<number, DatedEvent[]>();
  const add = (execution: unknown, at: unknown, event: unknown) => {
    if (!isObject(event) || typeof event.kind !== "string" || typeof event.id !== "number") {
      throw new Error("The file has something that is not an event of a history.");
    }
    const key = typeof execution === "number" ? execution : 1;
    const events = executions.get(key) ?? [];
    // The kinds that are drawn are checked when they are drawn; an unknown kind is shown unchanged.
    events.push({ at: typeof at === "number" ? at : 0, event: event as unknown as HistoryEvent });
    executions.set(key, events);
  };
  for (const item of list) {
    if (!isObject(item)) throw new Error("The file has something that is not a commit.");
    if (Array.isArray(item.events)) for (const event of item.events) add(item.execution, item.at, event);
    else {
      const { execution, at, ...event } = item;
      add(execution, at, event);
    }
  }
  const first = list[0];
  const instanceId = isObject(value) ? value.instanceId : isObject(first) ? first.instanceId : undefined;
  return { instanceId: typeof instanceId === "string" ? instanceId : "imported", executions };
}

export function importedPage(imported: Imported, execution?: number): HistoryPage {
  const executions = [...imported.executions.keys()].sort((a, b) => a - b);
  const chosen = execution ?? executions.at(-1) ?? 1;
  const events = imported.executions.get(chosen) ?? [];
  return { execution: chosen, executions, total: events.length, events };
}
