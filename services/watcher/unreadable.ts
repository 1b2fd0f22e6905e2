/**
 * Entries of registers that nobody can read (E2): their instance is asked to look again, and writes what its history
 * says over them. Asked for as often as such an entry is met; the message id makes one question of it.
 */
import type { Wake } from "../../schemas/index.ts";
import { type Entry, encode } from "../../shared/bus/index.ts";
import { ownerIn } from "../../shared/sessions/records.ts";
import type { WatcherDeps } from "./deps.ts";

type Deps = Pick<WatcherDeps, "bus" | "names" | "runtime">;

export const unreadableSummary = (deps: Deps, { key, revision }: Entry): void =>
  ask(deps, key, `instances-${revision}`);

/** Where its instance cannot be told from it, the summaries of instances are searched for the session. */
export function unreadableRecord(deps: Deps, instances: Instances, { key, revision, value }: Entry): void {
  const owner = ownerIn(value);
  if (owner !== undefined) return ask(deps, owner, `sessions-${revision}`);
  ownerOf(instances, key).then(
    (found) => found !== undefined && ask(deps, found, `sessions-${revision}`),
    () => undefined, // met again with the next round
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
    // Met again with the next round.
    const message = `${instanceId} could not be asked to look: ${String(error)}`;
    runtime.announce({ kind: "fault", where: "watcher.registers", code: "not_asked", message, error });
  });
}
