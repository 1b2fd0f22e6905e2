import { z } from "zod";

/** A query that every instance answers, whatever its code: the messages it takes. */
export const messagesQuery = "holdfast-messages";

/** Names of the messages that the code of an instance takes. */
export const MessageNames = z.object({
  /** Queries with a handler. */
  queries: z.array(z.string()),
  /** Updates with a handler; none after the end. */
  updates: z.array(z.string()),
  /** Signals that the code waits for now; others are kept until it asks for them. */
  signals: z.array(z.string()),
});
/** Names of the messages that the code of an instance takes. */
export type MessageNames = z.infer<typeof MessageNames>;
