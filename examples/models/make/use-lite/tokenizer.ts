import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { maxTokens } from "./encoder.ts";

/**
 * Seven tokens with a colon in them were published without their score. The list is sorted by score, so each had
 * one between its neighbours'; without it the tokenizer would count them as certain and prefer them always.
 */
const Vocabulary = z.array(z.tuple([z.string(), z.number().nullable()]));
/** The first entries are control tokens: they must stay in place (ids are positions) but never match a text. */
const controlTokens = 6;
const never = -100;

const metaspace = { type: "Metaspace", replacement: "▁", add_prefix_space: true, prepend_scheme: "always" };

/** The sentencepiece vocabulary of the encoder in the file format of the `tokenizers` library. */
export function tokenizerFiles(folder: string): { tokenizer: object; config: object } {
  const vocabulary = Vocabulary.parse(JSON.parse(readFileSync(join(folder, "vocab.json"), "utf8")));
  const vocab = vocabulary.map(([token, score], id) =>
    id < controlTokens
      ? [id === 0 ? "<unk>" : token, never]
      : [token, score ?? vocabulary[id - 1]?.[1] ?? never],
  );
  return {
    tokenizer: {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: [],
      normalizer: { type: "NFKC" },
      pre_tokenizer: metaspace,
      post_processor: null,
      decoder: metaspace,
      model: { type: "Unigram", unk_id: 0, vocab },
    },
    config: {
      tokenizer_class: "PreTrainedTokenizerFast",
      model_max_length: maxTokens,
      unk_token: "<unk>",
      pad_token: "<unk>",
    },
  };
}
