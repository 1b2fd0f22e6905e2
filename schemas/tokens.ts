/**
 * The tokens that subjects consist of. Apart from the schemas, so that code which only builds subjects need
 * not load them.
 */

/** The one rule for everything that becomes a token of a subject or a key. */
export const tokenPattern = /^[A-Za-z0-9_-]{1,128}$/;
/** What an id may look like, in words. */
export const tokenRule = "1 to 128 characters of A-Z a-z 0-9 _ -";

/** The queue a pool's calls wait in; whichever member is free takes the next. */
export const poolQueue = (poolId: string): string => `pool-${poolId}`;
