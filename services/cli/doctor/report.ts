/** Findings as people read them. Pure. */
import { type Paint, plain } from "../terminal/paint.ts";
import { oneLine, table } from "../terminal/text.ts";
import type { Finding } from "./observations.ts";

const words = { good: "ok", note: "note", wrong: "WRONG" } as const;
const styles = { good: "green", note: "yellow", wrong: "red" } as const;

export function shownFindings(findings: readonly Finding[], paint: Paint = plain): string {
  const lines = table(
    findings,
    [
      { title: "", value: ({ verdict }) => words[verdict], style: ({ verdict }) => styles[verdict] },
      { title: "WHAT", value: ({ what }) => what },
      { title: "FOUND", value: ({ found }) => found },
    ],
    paint,
  );
  const advice = findings.flatMap(({ what, todo, verdict }) =>
    todo === undefined ? [] : [`${paint(styles[verdict], what)}: ${oneLine(todo)}`],
  );
  return advice.length === 0 ? lines : `${lines}\n\n${advice.join("\n")}`;
}
