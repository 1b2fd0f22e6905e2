import { float, int, ints, OnnxGraph, tensorType, type Value } from "../onnx/graph.ts";
import type { Weights } from "./weights.ts";

/*
 * Google's Universal Sentence Encoder lite as ONNX: two pre-norm transformer layers (256 → 512, 512 → 512, four
 * heads each), the mean over the tokens, one tanh layer, unit length. The shape is read from the published
 * TensorFlow.js graph; the numbers are its weights.
 */

export const embeddingSize = 512;
export const maxTokens = 128;
const heads = 4;
const normEpsilon = 1e-6;
/** Added to the attention of padding, so that softmax gives it nothing. */
const minusInfinity = -1e9;

export interface Head {
  labels: readonly string[];
  /** embeddingSize × labels, row by row. */
  weights: Float32Array;
  bias: Float32Array;
}

export interface EncoderOptions {
  weights: Weights;
  /** Without a head the model gives the embedding itself. */
  head?: Head;
  /**
   * Stores matrices as int8 with one scale each: a quarter of the size. Activations are not rounded
   * by the largest value of a batch, so an answer does not depend on the other texts in it.
   */
  quantize: boolean;
}

export function buildEncoder({ weights, head, quantize }: EncoderOptions): Buffer {
  const graph = new OnnxGraph("use-lite");
  const parts = encoderParts(graph, weights, quantize);

  graph.input("input_ids", tensorType.int64, ["batch", "tokens"]);
  graph.input("attention_mask", tensorType.int64, ["batch", "tokens"]);
  const ids = parts.clip("input_ids");
  const mask = graph.node("Cast", [parts.clip("attention_mask")], { to: int(tensorType.float) });
  const tokenMask = graph.node("Unsqueeze", [mask, parts.axis(2)]);

  const start = parts.embed(ids, tokenMask);
  const bias = parts.attentionBias(mask);
  // The first layer widens 256 to 512, so its residual goes through a matrix; the second adds its input as it is.
  const widened = parts.dense(
    start,
    "Layer_0/TransformerLayer/dense/kernel",
    "Layer_0/TransformerLayer/dense/bias",
  );
  const first = parts.feedForward(0, graph.node("Add", [parts.attention(0, start, bias, 256), widened]));
  const second = parts.feedForward(1, graph.node("Add", [parts.attention(1, first, bias, 512), first]));
  const sentence = parts.unitLength(parts.pool(second, mask, tokenMask));

  if (head) {
    const matrix = graph.floats("head_weights", [embeddingSize, head.labels.length], head.weights);
    const offset = graph.floats("head_bias", [head.labels.length], head.bias);
    graph.node("Add", [graph.node("MatMul", [sentence, matrix]), offset], {}, "logits");
    graph.output("logits", tensorType.float, ["batch", head.labels.length]);
  } else {
    graph.node("Unsqueeze", [sentence, parts.axis(1)], {}, "last_hidden_state");
    graph.output("last_hidden_state", tensorType.float, ["batch", 1, embeddingSize]);
  }
  return graph.toModel();
}

function encoderParts(graph: OnnxGraph, weights: Weights, quantize: boolean) {
  const axes = new Map<number, Value>();
  const axis = (index: number): Value => {
    const value = axes.get(index) ?? graph.int64s(`axis_${index}`, [index]);
    axes.set(index, value);
    return value;
  };
  const one = graph.scalar("one", 1);

  const vector = (piece: string): Value => {
    const { shape, data } = weights.find(piece);
    return graph.floats(piece, shape, data);
  };

  /** Applies `pick` to the stored matrix and only then unpacks: looking up tokens must not unpack all 8 000. */
  const matrix = (piece: string, pick: (stored: Value) => Value = (stored) => stored): Value => {
    const { shape, data } = weights.find(piece);
    // Attention kernels are published as 1×1 convolutions.
    const size = shape.slice(-2);
    if (!quantize) return pick(graph.floats(piece, size, data));
    const scale = data.reduce((largest, x) => Math.max(largest, Math.abs(x)), 0) / 127 || 1;
    const packed = graph.int8s(
      `${piece}_int8`,
      size,
      Int8Array.from(data, (x) => Math.round(x / scale)),
    );
    return graph.node("DequantizeLinear", [pick(packed), graph.scalar(`${piece}_scale`, scale)]);
  };

  const dense = (x: Value, kernel: string, bias: string): Value =>
    graph.node("Add", [graph.node("MatMul", [x, matrix(kernel)]), vector(bias)]);

  const norm = (x: Value, scope: string): Value => {
    const layer = `${scope}/layer_prepostprocess/layer_norm`;
    const inputs = [x, vector(`${layer}/layer_norm_scale`), vector(`${layer}/layer_norm_bias`)];
    return graph.node("LayerNormalization", inputs, { axis: int(-1), epsilon: float(normEpsilon) });
  };

  return {
    axis,
    dense,

    clip: (tokens: Value): Value =>
      graph.node("Slice", [
        tokens,
        graph.int64s(`${tokens}_from`, [0]),
        graph.int64s(`${tokens}_to`, [maxTokens]),
        axis(1),
      ]),

    /** Token vectors (doubled, as published) plus the sine and cosine of their positions. */
    embed(ids: Value, tokenMask: Value): Value {
      const vectors = matrix("module/Embeddings_en", (stored) => graph.node("Gather", [stored, ids]));
      const tokens = graph.node("Mul", [vectors, tokenMask]);
      const length = graph.node("Gather", [graph.node("Shape", [ids]), graph.int64s("token_axis", [1], [])]);
      const range = [graph.int64s("first", [0], []), length, graph.int64s("step", [1], [])];
      const positions = graph.node("Cast", [graph.node("Range", range)], { to: int(tensorType.float) });
      const column = graph.node("Unsqueeze", [positions, axis(1)]);
      const angles = graph.node("MatMul", [column, vector("TimingSignal/ExpandDims_1")]);
      const waves = graph.node("Concat", [graph.node("Sin", [angles]), graph.node("Cos", [angles])], {
        axis: int(1),
      });
      const doubled = graph.node("Add", [tokens, tokens]);
      return graph.node("Add", [doubled, graph.node("Mul", [waves, tokenMask])]);
    },

    attentionBias(mask: Value): Value {
      const padding = graph.node("Sub", [one, mask]);
      const bias = graph.node("Mul", [padding, graph.scalar("minus_infinity", minusInfinity)]);
      return graph.node("Unsqueeze", [bias, graph.int64s("heads_and_rows", [1, 2])]);
    },

    attention(layer: 0 | 1, x: Value, bias: Value, width: number): Value {
      const scope = `Layer_${layer}/TransformerLayer`;
      const projection = `${scope}/MultiheadAttention/qkv_transform_single`;
      const qkv = dense(norm(x, scope), `${projection}/kernel`, `${projection}/bias`);
      const [query, key, value] = graph.splitInThree(qkv, width, 2);
      const shape = graph.int64s(`heads_${layer}`, [0, 0, heads, width / heads]);
      const perHead = (part: Value, ...order: readonly number[]): Value =>
        graph.node("Transpose", [graph.node("Reshape", [part, shape])], { perm: ints(...order) });
      const scale = graph.scalar(`scale_${layer}`, 1 / Math.sqrt(width / heads));
      const scaled = graph.node("Mul", [perHead(query, 0, 2, 1, 3), scale]);
      const scores = graph.node("Add", [graph.node("MatMul", [scaled, perHead(key, 0, 2, 3, 1)]), bias]);
      const shares = graph.node("Softmax", [scores], { axis: int(-1) });
      const mixed = graph.node("MatMul", [shares, perHead(value, 0, 2, 1, 3)]);
      const rows = graph.node("Transpose", [mixed], { perm: ints(0, 2, 1, 3) });
      const joined = graph.node("Reshape", [rows, graph.int64s(`joined_${layer}`, [0, 0, width])]);
      const output = `${scope}/MultiheadAttention/output_transform_single`;
      return dense(joined, `${output}/kernel`, `${output}/bias`);
    },

    feedForward(layer: 0 | 1, x: Value): Value {
      const scope = `Layer_${layer}/TransformerLayer/FFN`;
      const wide = dense(norm(x, scope), `${scope}/conv1/Tensordot/Reshape_1`, `${scope}/conv1/bias`);
      const active = graph.node("Relu", [wide]);
      return graph.node("Add", [
        x,
        dense(active, `${scope}/conv2/Tensordot/Reshape_1`, `${scope}/conv2/bias`),
      ]);
    },

    /** The mean over real tokens (an empty text has none: its length counts as one), then the tanh layer. */
    pool(x: Value, mask: Value, tokenMask: Value): Value {
      const sum = graph.node("ReduceSum", [graph.node("Mul", [x, tokenMask]), axis(1)], { keepdims: int(0) });
      const length = graph.node("Max", [graph.node("ReduceSum", [mask, axis(1)], { keepdims: int(1) }), one]);
      const mean = graph.node("Div", [sum, length]);
      return graph.node("Tanh", [dense(mean, "tanh_layer_0/weights", "tanh_layer_0/bias")]);
    },

    unitLength(x: Value): Value {
      const squares = graph.node("ReduceSum", [graph.node("Mul", [x, x]), axis(-1)], { keepdims: int(1) });
      const floor = graph.scalar("smallest_square", 1e-12);
      return graph.node("Div", [x, graph.node("Sqrt", [graph.node("Max", [squares, floor])])]);
    },
  };
}
