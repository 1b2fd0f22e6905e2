/** Subject transforms of streams: `{{wildcard(i)}}`, `{{partition(n,i,…)}}` and a trailing `>`. */
import { matches } from "../../bus/index.ts";
import { hash32 } from "../../runtime/index.ts";

export function transformed(transform: { from: string; to: string } | undefined, subject: string): string {
  if (!transform || !matches(transform.from, subject)) return subject;
  const from = transform.from.split(".");
  const given = subject.split(".");
  const wildcards = from.flatMap((token, i) => (token === "*" ? [given[i] ?? ""] : []));
  const rest = from.at(-1) === ">" ? given.slice(from.length - 1) : [];
  const at = (index: string) => wildcards[Number(index) - 1] ?? "";
  return transform.to
    .split(".")
    .flatMap((token) => {
      if (token === ">") return rest;
      const [, name, list = ""] = /^\{\{(\w+)\(([^)]*)\)\}\}$/.exec(token) ?? [];
      const [first = "", ...others] = list.split(",").map((part) => part.trim());
      if (name === "wildcard") return [at(first)];
      if (name === "partition") return [String(hash32(others.map(at).join("")) % Number(first))];
      return [token];
    })
    .join(".");
}
