import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildEncoder, embeddingSize, type Head, maxTokens } from "./use-lite/encoder.ts";
import { tokenizerFiles } from "./use-lite/tokenizer.ts";
import { Weights } from "./use-lite/weights.ts";

export interface ModelFiles {
  /** Where the published weights and vocabulary are. */
  source: string;
  folder: string;
  dtype: "fp32" | "q8";
  head?: Head;
}

/** Writes a folder that transformers.js opens as a model. */
export function writeModel({ source, folder, dtype, head }: ModelFiles): void {
  const onnx = buildEncoder({ weights: new Weights(source), head, quantize: dtype === "q8" });
  const { tokenizer, config } = tokenizerFiles(source);
  const file = dtype === "q8" ? "model_quantized.onnx" : "model.onnx";
  mkdirSync(join(folder, "onnx"), { recursive: true });
  writeFileSync(join(folder, "onnx", file), onnx);
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  writeFileSync(join(folder, "tokenizer_config.json"), `${JSON.stringify(config, null, 2)}\n`);
  writeFileSync(join(folder, "config.json"), `${JSON.stringify(modelConfig(dtype, head), null, 2)}\n`);
}

function modelConfig(dtype: "fp32" | "q8", head: Head | undefined): object {
  const labels = head?.labels.map((label, id) => [id, label] as const) ?? [];
  return {
    // transformers.js chooses its classes by this name; BERT's take the same inputs and outputs as this encoder.
    model_type: "bert",
    architectures: [head ? "BertForSequenceClassification" : "BertModel"],
    hidden_size: embeddingSize,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    vocab_size: 8002,
    max_position_embeddings: maxTokens,
    ...(head && {
      id2label: Object.fromEntries(labels),
      label2id: Object.fromEntries(labels.map(([id, label]) => [label, id])),
    }),
    // The one file there is: without this the library would look for fp32.
    "transformers.js_config": { dtype },
  };
}
