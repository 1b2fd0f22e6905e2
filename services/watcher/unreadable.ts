/**
 * Handles unreadable register entries (E2): the instance is asked to look, and overwrites the entry with what
 * its history says. The watcher asks whenever it meets such an entry; the message id makes one request of it.
 */
import type { Wake } from "../../schemas/index.ts";
import { type Entry, encode } from "../../shared/bus/index.ts";
import { announceFault } from "../../shared/runtime/index.ts";
import { ownerIn } from "../../shared/sessions/index.ts";
import type { WatcherDeps } from "./deps.ts";

type Deps = Pick<WatcherDeps, "bus" | "names" | "runtime">;

export const unreadableSummary = (deps: Deps, { key, revision }: Entry): void =>
  ask(deps, key, `instances-${revision}`);

/** If the entry does not name its instance, the summaries of instances are searched for the session. */
export function unreadableRecord(deps: Deps, instances: Instances, { key, revision, value }: Entry): void {
  const owner = ownerIn(value);
  if (owner !== undefined) return ask(deps, owner, `sessions-${revision}`);
  ownerOf(instances, key).then(
    (found) => found !== undefined && ask(deps, found, `sessions-${revision}`),
    () => undefined, // the next round meets the entry again
  );
}

type Instances = WatcherDeps["registers"]["instances"];

async function ownerOf(instances: Instances, sessionId: string): Promise<string | undefined> {
  for await (const { key, value } of instances.entries()) {
    if (value.sessions?.some((id) => id === sessionId)) return key;
  }
  return undefined;
}

function ask({ bus, names, runtime }: Deps, instanceId: string, entry: string): void {
  const look: Wake = { v: 1, execution: 1, of: 0 };
  const msgId = `look-${instanceId}-${entry}`;
  bus.publish(names.verb(instanceId, "wake"), encode(look), { msgId }).catch((error: unknown) => {
    // The next round meets the entry again.
    announceFault(runtime, "watcher.registers", error, {
      code: "not_asked",
      about: `${instanceId} could not be asked to look`,
    });
  });
}
