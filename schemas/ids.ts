import { z } from "zod";
import { tokenPattern, tokenRule } from "./tokens.ts";

const token = z.string().regex(tokenPattern, `must be ${tokenRule}`);

/** The id of an instance: a token that can stand in a subject. */
export const InstanceId = token.brand<"InstanceId">();
export type InstanceId = z.infer<typeof InstanceId>;

/** The id of a session: a token that can stand in a subject. */
export const SessionId = token.brand<"SessionId">();
export type SessionId = z.infer<typeof SessionId>;

/** Node id plus incarnation: a restarted worker is another worker (S3). */
export const WorkerId = token.brand<"WorkerId">();
export type WorkerId = z.infer<typeof WorkerId>;

/** Names of orchestrations, activities, queues, session types, signals: also tokens of subjects. */
export const Name = token.brand<"Name">();
export type Name = z.infer<typeof Name>;

/** Position of an event in the history of one execution, from 1, gap-free. */
export const EventId = z.int().positive();
export type EventId = z.infer<typeof EventId>;

/** The lease revision of a winning claim; a fencing token that only grows (S2). */
export const Epoch = z.int().positive();
export type Epoch = z.infer<typeof Epoch>;
