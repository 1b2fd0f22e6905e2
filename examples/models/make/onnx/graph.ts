import { bytesField, floatField, intField, message, stringField } from "./protobuf.ts";

/** TensorProto.DataType: only what the encoder uses. */
export const tensorType = { float: 1, int8: 3, int64: 7 } as const;
export type TensorType = (typeof tensorType)[keyof typeof tensorType];

/** The name of a tensor that flows through the graph. */
export type Value = string;
export type Attribute =
  | { kind: "int"; value: number }
  | { kind: "float"; value: number }
  | { kind: "ints"; value: readonly number[] };
export type Attributes = Readonly<Record<string, Attribute>>;

export const int = (value: number): Attribute => ({ kind: "int", value });
export const float = (value: number): Attribute => ({ kind: "float", value });
export const ints = (...value: readonly number[]): Attribute => ({ kind: "ints", value });

const irVersion = 8;
const opset = 17;

/** Collects nodes and constants and writes them as an ONNX model. Field numbers are those of onnx.proto3. */
export class OnnxGraph {
  readonly #name: string;
  readonly #nodes: Buffer[] = [];
  readonly #constants: Buffer[] = [];
  readonly #inputs: Buffer[] = [];
  readonly #outputs: Buffer[] = [];
  #made = 0;

  constructor(name: string) {
    this.#name = name;
  }

  input(name: string, type: TensorType, shape: readonly (number | string)[]): Value {
    this.#inputs.push(valueInfo(name, type, shape));
    return name;
  }

  output(name: string, type: TensorType, shape: readonly (number | string)[]): void {
    this.#outputs.push(valueInfo(name, type, shape));
  }

  floats(name: string, shape: readonly number[], data: Float32Array): Value {
    return this.#constant(name, tensorType.float, shape, data);
  }

  int8s(name: string, shape: readonly number[], data: Int8Array): Value {
    return this.#constant(name, tensorType.int8, shape, data);
  }

  int64s(name: string, values: readonly number[], shape: readonly number[] = [values.length]): Value {
    return this.#constant(name, tensorType.int64, shape, BigInt64Array.from(values, BigInt));
  }

  scalar(name: string, value: number): Value {
    return this.floats(name, [], Float32Array.of(value));
  }

  node(type: string, inputs: readonly Value[], attributes: Attributes = {}, output?: string): Value {
    const name = output ?? `${type}_${this.#made++}`;
    this.#add(type, inputs, [name], attributes);
    return name;
  }

  /** The one node with several outputs: cuts a tensor into parts of equal length along an axis. */
  splitInThree(value: Value, partLength: number, axis: number): [Value, Value, Value] {
    const base = `Split_${this.#made++}`;
    const parts: [Value, Value, Value] = [`${base}_0`, `${base}_1`, `${base}_2`];
    const lengths = this.int64s(`${base}_lengths`, [partLength, partLength, partLength]);
    this.#add("Split", [value, lengths], parts, { axis: int(axis) });
    return parts;
  }

  toModel(): Buffer {
    const graph = message(
      ...this.#nodes.map((node) => bytesField(1, node)),
      stringField(2, this.#name),
      ...this.#constants.map((constant) => bytesField(5, constant)),
      ...this.#inputs.map((value) => bytesField(11, value)),
      ...this.#outputs.map((value) => bytesField(12, value)),
    );
    const operators = message(stringField(1, ""), intField(2, opset));
    return message(
      intField(1, irVersion),
      stringField(2, "holdfast"),
      bytesField(7, graph),
      bytesField(8, operators),
    );
  }

  #constant(name: string, type: TensorType, shape: readonly number[], data: ArrayBufferView): Value {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    const dimensions = shape.map((size) => intField(1, size));
    this.#constants.push(
      message(...dimensions, intField(2, type), stringField(8, name), bytesField(9, bytes)),
    );
    return name;
  }

  #add(type: string, inputs: readonly Value[], outputs: readonly Value[], attributes: Attributes): void {
    this.#nodes.push(
      message(
        ...inputs.map((name) => stringField(1, name)),
        ...outputs.map((name) => stringField(2, name)),
        stringField(3, `n${this.#nodes.length}_${type}`),
        stringField(4, type),
        ...Object.entries(attributes).map(([name, value]) => bytesField(5, attribute(name, value))),
      ),
    );
  }
}

function attribute(name: string, attribute: Attribute): Buffer {
  switch (attribute.kind) {
    case "float":
      return message(stringField(1, name), floatField(2, attribute.value), intField(20, 1));
    case "int":
      return message(stringField(1, name), intField(3, attribute.value), intField(20, 2));
    case "ints":
      return message(
        stringField(1, name),
        ...attribute.value.map((item) => intField(8, item)),
        intField(20, 7),
      );
  }
}

function valueInfo(name: string, type: TensorType, shape: readonly (number | string)[]): Buffer {
  const dimensions = shape.map((size) =>
    bytesField(1, typeof size === "string" ? stringField(2, size) : intField(1, size)),
  );
  const tensor = message(intField(1, type), bytesField(2, message(...dimensions)));
  return message(stringField(1, name), bytesField(2, bytesField(1, tensor)));
}
