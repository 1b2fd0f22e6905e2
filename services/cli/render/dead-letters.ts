/** Dead letters as text for people. Pure. */

import type { DeadLetterView } from "../../../shared/sdk/index.ts";
import { count } from "../../../shared/wording/index.ts";
import { clip } from "../terminal/output.ts";
import { type Paint, plain } from "../terminal/paint.ts";
import { brief, pairs, table, time } from "../terminal/text.ts";

export function deadTable(
  { letters, total }: { letters: readonly DeadLetterView[]; total: number },
  paint: Paint = plain,
): string {
  const lines = table(
    letters,
    [
      { title: "SEQ", value: (letter) => letter.seq, align: "right" },
      { title: "AT", value: (letter) => time(letter.at) },
      { title: "WHAT", value: (letter) => letter.what },
      { title: "ABOUT", value: (letter) => letter.id },
      { title: "CODE", value: (letter) => letter.reason.code, style: () => "red" },
      { title: "REASON", value: (letter) => clip(letter.reason.message, 80) },
    ],
    paint,
  );
  const more = total - letters.length;
  return more > 0 ? `${lines}\n${count(more, "older letter")} not shown` : lines;
}

export const shownLetter = (letter: DeadLetterView, paint: Paint = plain): string =>
  pairs(
    [
      ["seq", letter.seq],
      ["at", time(letter.at)],
      ["what", letter.what],
      ["about", letter.id],
      ["reason", `${letter.reason.message} (${letter.reason.code})`],
      ["subject", letter.subject],
      ["headers", Object.keys(letter.headers).length > 0 ? brief(letter.headers, 1000) : ""],
      ["bytes", letter.bytes],
      ["body", letter.text ?? "not text"],
    ],
    paint,
  );
