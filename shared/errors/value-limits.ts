/**
 * Limits of a user's value, checked where it enters the engine. A message nests a value a few levels deeper, so its
 * own limit is higher: every later reader can read an accepted value.
 */
export const maxValueDepth = 180;
export const maxMessageDepth = 200;
export const maxValueBytes = 128 * 1024 * 1024;

/** Counts brackets outside of strings. A parser or a schema may recurse on each level; this does not. */
export function isDeeperThan(json: string, maxDepth: number): boolean {
  if (json.length <= maxDepth) return false;
  let depth = 0;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === quote) i = endOfString(json, i);
    else if (code === openBrace || code === openBracket) {
      if (++depth > maxDepth) return true;
    } else if (code === closeBrace || code === closeBracket) depth--;
  }
  return false;
}

/**
 * Where the string that begins here ends: at a quote after an even number of backslashes. `indexOf` skips
 * long texts quickly.
 */
function endOfString(json: string, begin: number): number {
  for (let end = begin; ; ) {
    end = json.indexOf('"', end + 1);
    if (end < 0) return json.length;
    let before = end - 1;
    while (json.charCodeAt(before) === backslash) before--;
    if ((end - before) % 2 === 1) return end;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;
