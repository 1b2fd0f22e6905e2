import { type Attachment, holderIn, type SessionState } from "../../../schemas/index.ts";

/** The worker that holds a session now, if one does. */
export const holder = ({ phase }: SessionState): Attachment | undefined => holderIn(phase);
