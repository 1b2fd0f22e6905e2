/**
 * A misspelt variable is ignored without a word. Names with a common prefix (`NATS_…`, `LOG_…`) cannot be
 * refused for being unknown: applications and platforms have their own. They are refused if they are one
 * letter off a setting that is itself not set.
 */
export function misspelt(given: readonly string[], known: readonly string[]): string[] {
  const missing = known.filter((name) => !given.includes(name));
  return given
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const meant = missing.find((setting) => oneLetterOff(name, setting));
      return meant === undefined ? [] : [`${name} (${meant}?)`];
    });
}

/** One letter more, less or different, or two neighbours swapped. */
function oneLetterOff(a: string, b: string): boolean {
  if (a === b || Math.abs(a.length - b.length) > 1) return false;
  let from = 0;
  while (from < a.length && a[from] === b[from]) from++;
  let endA = a.length;
  let endB = b.length;
  while (endA > from && endB > from && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const restA = a.slice(from, endA);
  const restB = b.slice(from, endB);
  const swapped = restA.length === 2 && restB === `${restA[1]}${restA[0]}`;
  return swapped || (restA.length <= 1 && restB.length <= 1);
}
