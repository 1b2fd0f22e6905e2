/**
 * SEC-9 Nobody can guess where an answer is awaited. A process that is asked sees one reply subject of the asker, and can
 *    have the server answer on any other (by naming it in a request of its own): with names that follow one another it
 *    would answer for the server, or for another process.
 */
import { randomFillSync } from "node:crypto";

const pool = Buffer.alloc(8_190);
let used = pool.length;

/** A token for a subject, of so many random bytes; from a pool, because every request has one. */
function random(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString("base64url", used - bytes, used);
}

/** The beginning of reply subjects, with the dot. */
export const newInbox = (prefix = "_INBOX"): string => `${prefix}.${random(15)}.`;

/** The last token of one reply subject. */
export const newReply = (): string => random(9);
