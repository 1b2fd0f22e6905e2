/**
 * `dev --watch`: changed code is loaded into new processes while the old ones still serve.
 *
 * RELOAD-1 The old orchestrator and workers stop only when new ones with the changed code are ready. Code
 *    that does not load changes nothing.
 * RELOAD-2 Every instance that has not ended is checked with the new code: an instance whose history
 *    disagrees with the code is parked now, with the reason, and not when its next message comes.
 */

import type { Wake } from "../../../schemas/index.ts";
import { connectBus, encode, subjects } from "../../../shared/bus/index.ts";
import { silent } from "../../../shared/runtime/index.ts";
import { Client } from "../../../shared/sdk/index.ts";
import { count } from "../../../shared/wording/index.ts";
import { type Environment, readConfig } from "../../config.ts";
import { connectionSettings } from "../../run-service.ts";
import { errorLine } from "../terminal/report-error.ts";
import { span } from "../terminal/text.ts";
import { watchFiles } from "./watch-files.ts";

interface ReloadOptions {
  /** Source files below this folder are watched. */
  root: string;
  /** Includes the address of the server. */
  env: Environment;
  /** Replaces the old processes by new ones; rejects, with nothing changed, if the new ones do not start. */
  replaceAll: () => Promise<void>;
  /** Called with one line of text for people. */
  onNote: (text: string) => void;
}

export interface Reloading {
  stop(): Promise<void>;
}

export function reloadOnChange({ root, env, replaceAll, onNote }: ReloadOptions): Reloading {
  let stopped = false;
  let again: string[] | undefined;
  let running: Promise<void> | undefined;

  const reload = async (files: readonly string[]): Promise<void> => {
    const since = performance.now();
    onNote(`changed: ${files.slice(0, 3).join(", ")}${files.length > 3 ? ", …" : ""}; loading`);
    try {
      await replaceAll();
    } catch (error) {
      if (!stopped) onNote(`${errorLine(error, false)}\n  The code from before goes on.`);
      return;
    }
    const looked = await lookAtAll(env).catch((error: unknown) => onNote(errorLine(error, false)));
    const meet = looked
      ? `; ${count(looked, "open instance")} ${looked === 1 ? "meets" : "meet"} it now`
      : "";
    onNote(`loaded in ${span(performance.now() - since)}${meet}`);
  };
  const changed = (files: string[]): void => {
    // One reload at a time; changes made meanwhile are loaded after it.
    if (running) {
      again = [...(again ?? []), ...files];
      return;
    }
    running = reload(files).finally(() => {
      running = undefined;
      const waiting = again;
      again = undefined;
      if (waiting && !stopped) changed(waiting);
    });
  };
  const watched = watchFiles(root, changed);
  return {
    async stop() {
      stopped = true;
      watched.stop();
      await running;
    },
  };
}

/** Only the newest instances are checked; the others meet the new code with their next message. */
const mostLooked = 1_000;

/**
 * Asks the owner of every instance that has not ended to check it (RELOAD-2). Returns the number of
 * instances.
 */
async function lookAtAll(env: Environment): Promise<number> {
  const { config } = readConfig(env, "cli");
  const names = subjects(config.prefix);
  const bus = await connectBus({ ...connectionSettings(config, names, "holdfast-dev"), announce: silent });
  const client = new Client({ bus, names });
  try {
    const instances = await client.list({ status: ["running", "parked"], limit: mostLooked });
    const look = encode({ v: 1, execution: 1, of: 0 } satisfies Wake);
    for (const { instanceId } of instances) {
      const msgId = `look-${instanceId}-reload-${Date.now()}`;
      await bus.publish(names.verb(instanceId, "wake"), look, { msgId });
    }
    return instances.length;
  } finally {
    await client.close();
  }
}
