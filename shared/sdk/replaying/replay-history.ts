/**
 * Replays code over a stored history and reports whether it makes the same decisions: before a deployment, or
 * in CI.
 */
import type { Commit, Payload } from "../../../schemas/index.ts";
import type { App } from "../../definitions/index.ts";
import { Fault } from "../../errors/index.ts";
import { Instance, type InstanceHost, installGuards } from "../../replay/index.ts";
import type { HistoryFile } from "./history-file.ts";

/** The result of a replay: the code agrees with the history, or differs from it at a first place. */
export type ReplayOutcome =
  | { kind: "agrees"; instanceId: string; executions: number; events: number }
  /** The first place where the code issued another command than the one recorded. */
  | {
      kind: "disagrees";
      instanceId: string;
      execution: number;
      /** Id of the recorded event; undefined if the history has none at this place. */
      event?: number | undefined;
      code: string;
      message: string;
      hint?: string | undefined;
    };

/** Options of `replayHistory`. */
export interface ReplayOptions {
  /** Fetches values that are neither in the history nor in the file. */
  fetch?: ((payload: Payload) => Promise<unknown>) | undefined;
}

/**
 * Runs the application's code over a recorded history and reports if it makes the same decisions. Uses no NATS server.
 *
 * @example
 * ```ts
 * const file = HistoryFile.parse(JSON.parse(readFileSync("order-7.history.json", "utf8")));
 * const outcome = await replayHistory(collectApp(app), file);
 * if (outcome.kind === "disagrees") throw new Error(outcome.message);
 * ```
 */
export async function replayHistory(
  app: App,
  file: HistoryFile,
  options: ReplayOptions = {},
): Promise<ReplayOutcome> {
  installGuards();
  const { instanceId, commits } = file;
  const host = hostOf(app, file, options);
  const executions = byExecution(commits);
  for (const [execution, own] of executions) {
    const instance = new Instance(instanceId, host);
    await instance.load(own, { check: true });
    const fault = instance.parked;
    if (!fault) continue;
    const { code, message, hint, details } = fault;
    return { kind: "disagrees", instanceId, execution, event: eventIn(details), code, message, hint };
  }
  const events = commits.reduce((sum, commit) => sum + commit.events.length, 0);
  return { kind: "agrees", instanceId, executions: executions.size, events };
}

/** Signals that arrived before the start belong to the first execution. */
function byExecution(commits: readonly Commit[]): Map<number, Commit[]> {
  const executions = new Map<number, Commit[]>();
  for (const commit of commits) {
    const execution = Math.max(1, commit.execution);
    executions.set(execution, [...(executions.get(execution) ?? []), commit]);
  }
  return executions;
}

const hostOf = (app: App, { values = {} }: HistoryFile, { fetch }: ReplayOptions): InstanceHost => ({
  app,
  payloads: {
    inlineBytes: Number.POSITIVE_INFINITY,
    store: async (json) => ({ json: JSON.parse(json) }),
    fetch: async (payload) => {
      if ("json" in payload) return payload.json;
      const { key } = payload.blob;
      if (Object.hasOwn(values, key)) return values[key];
      if (fetch) return fetch(payload);
      throw new Fault("config", {
        code: "value_missing",
        message: `the history refers to ${key}, which is not in the file`,
        hint: "Write the file with `holdfast history <id> --export`, or replay by instance id.",
      });
    },
  },
  placement: { whyUnclaimed: () => "" },
  log: () => undefined,
});

const eventIn = (details: unknown): number | undefined =>
  typeof details === "object" &&
  details !== null &&
  "eventId" in details &&
  typeof details.eventId === "number"
    ? details.eventId
    : undefined;
