import { isDeepStrictEqual } from "node:util";

/** Throws what was expected and what was seen. */
export function check(what: string, seen: unknown, expected: unknown): void {
  if (isDeepStrictEqual(seen, expected)) return;
  throw new Error(`${what}: expected ${JSON.stringify(expected)}, saw ${JSON.stringify(seen)}`);
}

export function ensure(what: string, isSo: boolean, seen?: unknown): void {
  if (!isSo) throw new Error(seen === undefined ? what : `${what}: saw ${JSON.stringify(seen)}`);
}
