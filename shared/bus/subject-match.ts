/** Matches wildcards as the server does. */
export function matches(filter: string, subject: string): boolean {
  if (filter === subject || filter === ">") return true;
  if (!hasWildcard(filter)) return false;
  const wanted = tokensOf(filter);
  const last = wanted.length - 1;
  let at = 0;
  for (let i = 0; i <= last; i++) {
    if (at > subject.length) return false;
    const token = wanted[i] as string;
    if (token === ">") return true;
    const dot = subject.indexOf(".", at);
    const end = dot < 0 ? subject.length : dot;
    if (token !== "*" && (end - at !== token.length || !subject.startsWith(token, at))) return false;
    at = end + 1;
  }
  return at > subject.length;
}

export const hasWildcard = (filter: string): boolean => filter.includes("*") || filter.endsWith(">");

/** Filters come again and again: there are few of them, and many subjects. */
const known = new Map<string, readonly string[]>();

function tokensOf(filter: string): readonly string[] {
  let tokens = known.get(filter);
  if (!tokens) {
    if (known.size > 10_000) known.clear();
    tokens = filter.split(".");
    known.set(filter, tokens);
  }
  return tokens;
}

/** True if one subject could match both filters. */
export function overlap(a: string, b: string): boolean {
  if (!hasWildcard(a)) return matches(b, a);
  if (!hasWildcard(b)) return matches(a, b);
  const left = tokensOf(a);
  const right = tokensOf(b);
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const one = left[i];
    const other = right[i];
    if (one === undefined || other === undefined) return false;
    if (one === ">" || other === ">") return true;
    if (one !== "*" && other !== "*" && one !== other) return false;
  }
  return true;
}
