/**
 * What must hold between an instance's state and what it has asked for: nothing that is open is forgotten. Follows the
 * effects as the orchestrator would publish them, schedules replaced by subject and taken away last.
 */
import { expect } from "vitest";
import type { SessionState } from "../../../schemas/index.ts";
import {
  type Effect,
  type InstanceState,
  nextDeadline,
  type OpenTask,
  suspect,
} from "../../../shared/replay/index.ts";

export class AskedFor {
  readonly #tasks = new Set<string>();
  readonly #calls = new Set<string>();
  readonly #claims = new Set<string>();
  readonly #wanted = new Set<string>();
  readonly #schedules = new Map<string, number>();

  add(execution: number, effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "task" || effect.kind === "local")
        this.#tasks.add(`${execution}:${effect.task.id}:${effect.task.attempt}`);
      if (effect.kind === "call")
        this.#calls.add(`${execution}:${effect.task.id}:${effect.task.attempt}:${effect.on.epoch}`);
      if (effect.kind === "claim") this.#claims.add(`${effect.session.sessionId}:${effect.attachment}`);
      if (effect.kind === "want-session")
        this.#wanted.add(`${effect.session.sessionId}:${effect.session.attachments}`);
      if (effect.kind === "schedule") this.#schedules.set(`${execution}:${effect.of}`, effect.at);
    }
    for (const effect of effects)
      if (effect.kind === "unschedule" || effect.kind === "forget-local")
        this.#schedules.delete(`${execution}:${effect.of}`);
  }

  check(state: Readonly<InstanceState>): void {
    for (const task of state.tasks.values()) this.#checkTask(state, task);
    for (const session of state.sessions.values()) this.#checkSession(state, session);
    const due = nextDeadline(state);
    if (due !== undefined)
      expect([...this.#schedules.values()], "the next deadline has a durable schedule").toContain(due);
  }

  /** Nothing wakes an instance that is over. */
  checkEnded(): void {
    expect([...this.#schedules], "schedules left behind").toEqual([]);
  }

  #checkTask(state: Readonly<InstanceState>, task: OpenTask): void {
    const key = `${state.execution}:${task.id}:${task.attempt}`;
    if (task.target.kind === "queue") {
      expect(this.#tasks.has(key), `task ${key} was handed out`).toBe(true);
      return;
    }
    if (task.target.kind === "local") {
      // The first attempt is covered by the worker that runs it, a later one by its schedule.
      if (task.attempt === 1) expect(this.#tasks.has(key), `${key} is to be run here`).toBe(true);
      else expect(this.#schedules.get(`${state.execution}:${task.id}`)).toBe(task.readyAt);
      return;
    }
    const session = state.sessions.get(task.target.sessionId);
    const phase = session?.phase;
    if (task.sentEpoch !== undefined)
      expect(this.#calls.has(`${key}:${task.sentEpoch}`), `call ${key}:${task.sentEpoch} was sent`).toBe(
        true,
      );
    if (phase?.kind === "parked" && session?.owner !== state.instanceId) {
      const asked = `${session?.sessionId}:${session?.attachments}`;
      expect(this.#wanted.has(asked), `${asked} was wanted of its owner`).toBe(true);
      return;
    }
    expect(phase?.kind, `call ${key} waits for somebody`).toMatch(/^(opening|claimed|active|rebuilding)$/);
    // A call under suspicion is sent alone (I4).
    const alone = session && suspect(state, session);
    if (phase?.kind === "active" && (!alone || alone === task))
      expect(task.sentEpoch, `call ${key} is with the holder`).toBe(phase.on.epoch);
  }

  #checkSession(
    state: Readonly<InstanceState>,
    { sessionId, phase, attachments, owner }: SessionState,
  ): void {
    if (phase.kind === "opening" && owner === state.instanceId)
      expect(this.#claims.has(`${sessionId}:${attachments}`), `${sessionId} was asked for`).toBe(true);
    if (phase.kind === "rebuilding") {
      const rebuild = state.tasks.get(phase.of);
      expect(rebuild?.byEngine, `${sessionId} is rebuilt by its task`).toBe(true);
      expect(rebuild?.sentEpoch, "the rebuild is with the holder").toBe(phase.on.epoch);
    }
  }
}
