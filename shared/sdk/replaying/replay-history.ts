/**
 * Replays code over a stored history and reports whether it makes the same decisions: before a deployment, or
 * in CI.
 */
import type { Commit, Payload } from "../../../schemas/index.ts";
import type { App } from "../../definitions/index.ts";
import { Fault } from "../../errors/index.ts";
import { Instance, type InstanceHost, installGuards } from "../../replay/index.ts";
import type { HistoryFile } from "./history-file.ts";

/** Whether the code still agrees with a history, and where it differs. */
export type ReplayOutcome =
  | { kind: "agrees"; instanceId: string; executions: number; events: number }
  /** The first place where the code did something else than the history says. */
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

/** What to replay a history against. */
export interface ReplayOptions {
  /** Fetches values that are neither in the history nor in the file. */
  fetch?: ((payload: Payload) => Promise<unknown>) | undefined;
}

/** Runs today's code against a recorded history and says whether they agree, without touching NATS. */
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
        hint: "Take the file with `holdfast history <id> --export`, or replay by instance id.",
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
