import { readFileSync } from "node:fs";
import { z } from "zod";

export const Mail = z.object({ id: z.string(), text: z.string(), label: z.enum(["ham", "spam"]) });
export type Mail = z.infer<typeof Mail>;

/** How many mails at the beginning of the file were kept out of the model's training. */
export const heldOutCount = 1_210;

/** Real mails with their labels; the ones the model was not trained on come first. */
export function loadMails(): Mail[] {
  const file = readFileSync(new URL("./mails.jsonl", import.meta.url), "utf8");
  return file
    .trimEnd()
    .split("\n")
    .map((line) => Mail.parse(JSON.parse(line)));
}
