/** The four protobuf encodings ONNX needs (https://protobuf.dev/programming-guides/encoding). */
const wireType = { varint: 0, lengthDelimited: 2, fixed32: 5 } as const;

function varint(value: number | bigint): Buffer {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes: number[] = [];
  do {
    const low = Number(rest & 0x7fn);
    rest >>= 7n;
    bytes.push(rest > 0n ? low | 0x80 : low);
  } while (rest > 0n);
  return Buffer.from(bytes);
}

const tag = (field: number, type: number): Buffer => varint(field * 8 + type);

export const message = (...fields: readonly Buffer[]): Buffer => Buffer.concat(fields);

export const intField = (field: number, value: number): Buffer =>
  message(tag(field, wireType.varint), varint(value));

export const bytesField = (field: number, bytes: Buffer): Buffer =>
  message(tag(field, wireType.lengthDelimited), varint(bytes.length), bytes);

export const stringField = (field: number, text: string): Buffer =>
  bytesField(field, Buffer.from(text, "utf8"));

export function floatField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return message(tag(field, wireType.fixed32), bytes);
}
