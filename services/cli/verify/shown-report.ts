/** A report as text for people. Pure. */
import { checkedLaws, type LawId, lawIds, type Report } from "../../../shared/verify/index.ts";
import { type Paint, plain } from "../terminal/paint.ts";
import { oneLine, span, table } from "../terminal/text.ts";

export function shownReport(report: Report, paint: Paint = plain): string {
  const { read, spreads, notes, violations, counts } = report;
  const parts = [
    `read: ${
      Object.entries(read)
        .map(([what, n]) => `${what} ${n}`)
        .join(", ") || "nothing"
    }`,
  ];
  const measured = Object.entries(spreads).map(([what, spread]) => ({ what, ...spread }));
  if (measured.length > 0)
    parts.push(
      table(
        measured,
        [
          { title: "MEASURED", value: ({ what }) => what },
          { title: "TIMES", value: ({ count }) => count, align: "right" },
          { title: "P50", value: ({ p50 }) => span(p50), align: "right" },
          { title: "P99", value: ({ p99 }) => span(p99), align: "right" },
          { title: "MOST", value: ({ max }) => span(max), align: "right" },
        ],
        paint,
      ),
    );
  if (notes.length > 0)
    parts.push(notes.map((note) => `${paint("yellow", "note")}: ${oneLine(note)}`).join("\n"));
  if (violations.length === 0) parts.push(paint("green", `no law is broken (${lawIds.length} checked)`));
  else {
    parts.push(
      table(
        violations,
        [
          { title: "LAW", value: ({ law }) => law, style: () => "red" },
          { title: "INSTANCE", value: ({ instanceId }) => instanceId ?? "–" },
          { title: "EVIDENCE", value: ({ evidence }) => evidence },
        ],
        paint,
      ),
      (Object.keys(counts) as LawId[])
        .map(
          (law) =>
            `${paint("red", law)} (${counts[law]} times), ${checkedLaws[law].statement}: ${checkedLaws[law].means}`,
        )
        .join("\n"),
    );
  }
  return parts.join("\n\n");
}
