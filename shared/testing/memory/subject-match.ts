/** Wildcards as the server understands them. */
export function matches(filter: string, subject: string): boolean {
  if (filter === subject || filter === ">") return true;
  const wanted = filter.split(".");
  const given = subject.split(".");
  for (const [i, token] of wanted.entries()) {
    if (token === ">") return given.length > i;
    if (given[i] === undefined || (token !== "*" && token !== given[i])) return false;
  }
  return wanted.length === given.length;
}

/** Could one subject match both? */
export function overlap(a: string, b: string): boolean {
  const left = a.split(".");
  const right = b.split(".");
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const one = left[i];
    const other = right[i];
    if (one === undefined || other === undefined) return false;
    if (one === ">" || other === ">") return true;
    if (one !== "*" && other !== "*" && one !== other) return false;
  }
  return true;
}
