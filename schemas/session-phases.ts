/**
 * The phases of a session's life, one row each. `SessionPhase` (session.ts) says what is known in each phase; a phase
 * without a row here does not compile.
 */
import { z } from "zod";
import type { Attachment, SessionPhase } from "./session.ts";

/** A phase without what is known in it, as in the register of sessions. */
export const SessionPhaseKind = z.enum([
  "parked",
  "opening",
  "claimed",
  "active",
  "rebuilding",
  "lost",
  "failed",
  "closed",
]);
export type SessionPhaseKind = z.infer<typeof SessionPhaseKind>;

interface SessionPhaseRow {
  /** A worker holds the session under an epoch. */
  held: boolean;
  /** Its state is there: calls, or the rebuild before them, run. */
  serves: boolean;
  /** A worker holds it, or was asked to and may hold it without having reported so. */
  mayBeHeld: boolean;
  /** No worker will hold it again: its calls fail. */
  over: boolean;
}

const absent: SessionPhaseRow = { held: false, serves: false, mayBeHeld: false, over: false };

/** What each phase means. */
export const sessionPhases: Readonly<Record<SessionPhaseKind, SessionPhaseRow>> = {
  parked: absent,
  opening: { ...absent, mayBeHeld: true },
  claimed: { ...absent, held: true, mayBeHeld: true },
  active: { ...absent, held: true, serves: true, mayBeHeld: true },
  rebuilding: { ...absent, held: true, serves: true, mayBeHeld: true },
  lost: { ...absent, over: true },
  failed: { ...absent, over: true },
  closed: { ...absent, over: true },
};

/** The worker that holds the session, with its epoch; undefined if no worker does. */
export const holderIn = (phase: SessionPhase): Attachment | undefined =>
  sessionPhases[phase.kind].held && "on" in phase ? phase.on : undefined;
