import type { Attachment, SessionState } from "../../../schemas/index.ts";

/** The worker that holds a session now, if one does. */
export const holder = (session: SessionState): Attachment | undefined =>
  session.phase.kind === "active" || session.phase.kind === "rebuilding" || session.phase.kind === "claimed"
    ? session.phase.on
    : undefined;
