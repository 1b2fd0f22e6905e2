import { embeddingSize, type Head } from "./use-lite/encoder.ts";

export interface Example {
  embedding: Float32Array;
  positive: boolean;
}

const epochs = 200;
const weightRate = 40;
const biasRate = 2;
const decay = 1e-5;

/** Logistic regression by plain gradient descent over all examples: small enough to need nothing cleverer. */
export function trainHead(examples: readonly Example[], labels: readonly [string, string]): Head {
  const weights = new Float32Array(embeddingSize);
  let bias = 0;
  for (let epoch = 0; epoch < epochs; epoch++) {
    const slope = new Float32Array(embeddingSize);
    let biasSlope = 0;
    for (const { embedding, positive } of examples) {
      const error = 1 / (1 + Math.exp(-dot(weights, embedding, bias))) - (positive ? 1 : 0);
      biasSlope += error;
      for (let i = 0; i < embeddingSize; i++) slope[i] = at(slope, i) + error * at(embedding, i);
    }
    for (let i = 0; i < embeddingSize; i++) {
      weights[i] = at(weights, i) - weightRate * (at(slope, i) / examples.length + decay * at(weights, i));
    }
    bias -= (biasRate * biasSlope) / examples.length;
  }
  return asTwoClasses(weights, bias, labels);
}

/** transformers.js applies softmax over the classes; half of z against minus half of z is the sigmoid of z. */
function asTwoClasses(weights: Float32Array, bias: number, labels: readonly [string, string]): Head {
  const columns = Float32Array.from({ length: embeddingSize * 2 }, (_, i) => {
    const half = at(weights, i >> 1) / 2;
    return i % 2 === 0 ? -half : half;
  });
  return { labels, weights: columns, bias: Float32Array.of(-bias / 2, bias / 2) };
}

function dot(weights: Float32Array, embedding: Float32Array, bias: number): number {
  let sum = bias;
  for (let i = 0; i < embeddingSize; i++) sum += at(weights, i) * at(embedding, i);
  return sum;
}

const at = (values: Float32Array, index: number): number => values[index] ?? 0;
