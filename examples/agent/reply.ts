/** Stands where a language model would: a reply made of what was said before, token by token, always the same. */
import { z } from "zod";

export const Turn = z.object({ who: z.enum(["user", "agent"]), text: z.string() });
export type Turn = z.infer<typeof Turn>;

export type Intent = "talking" | "advertising";

/** A token is a word with the space before it, as a language model has it: joined, they are the text. */
export const replyTo = (turns: readonly Turn[], text: string, intent: Intent): string[] =>
  sentenceFor(turns, text, intent).match(/\s*\S+/g) ?? [];

function sentenceFor(turns: readonly Turn[], text: string, intent: Intent): string {
  const said = turns.filter(({ who }) => who === "user").map((turn) => turn.text);
  const name = nameIn(text);
  if (name !== undefined) return `Nice to meet you, ${name}. I will keep that in mind.`;
  if (/\bmy name\b/i.test(text)) {
    const known = said.map(nameIn).findLast((one) => one !== undefined);
    return known === undefined ? "You have not told me your name yet." : `Your name is ${known}.`;
  }
  if (intent === "advertising") return "That reads like an advertisement, so I will leave it at that.";
  if (said.length === 0) return `Hello. You said: ${text}`;
  return `You said: ${text} Before that, in ${said.length} turns, the last was: ${said.at(-1)}`;
}

const nameIn = (text: string): string | undefined => /\bmy name is (\p{L}+)/iu.exec(text)?.[1];
