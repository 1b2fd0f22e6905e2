/** The model that the sessions and the bare loop share. */
import { fileURLToPath } from "node:url";
import { loadMails } from "../../examples/mails/mails.ts";

export const model = {
  model: "spam-use",
  localModelPath: fileURLToPath(new URL("../../examples/models", import.meta.url)),
  device: "cpu",
} as const;

export const batchSize = 8;

/** Beginnings of real mails: short, so that the engine's part is not hidden behind the model's. */
export const texts: readonly string[] = loadMails().map((mail) => mail.text.slice(0, 100));
