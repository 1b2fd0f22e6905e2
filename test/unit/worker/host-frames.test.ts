import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { frame } from "../../../services/worker/hosts/foreign/frame.ts";
import { FrameReader } from "../../../services/worker/hosts/foreign/frame-reader.ts";

interface Heard {
  messages: object[];
  tooLong: [string, number][];
  breaches: string[];
}

function read(chunks: Iterable<Uint8Array>, limit = 1_000_000): Heard {
  const heard: Heard = { messages: [], tooLong: [], breaches: [] };
  const reader = new FrameReader(limit, {
    message: (message) => heard.messages.push(message),
    tooLong: (head, bytes) => heard.tooLong.push([head, bytes]),
    breach: (line) => heard.breaches.push(line),
  });
  for (const chunk of chunks) reader.push(Buffer.from(chunk));
  reader.end();
  return heard;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const call = (id: number, input: unknown) => ({
  kind: "call" as const,
  ...{ id, key: "s@1", name: "x", input },
  run: { instanceId: "i", name: "x", attempt: 1 },
});

describe("messages of hosts", () => {
  it("arrive whole, with their bytes, however the stream is cut", () => {
    const binary = fc.uint8Array({ maxLength: 40 });
    const value = fc.oneof(
      fc.jsonValue(),
      binary,
      fc.array(binary),
      fc.record({ a: binary, b: fc.string() }),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 8 }), fc.infiniteStream(fc.nat(17)), (values, cuts) => {
        const messages = values.map((input, index) => call(index + 1, input));
        const stream = Buffer.concat(messages.flatMap((message) => frame(message, 1_000_000)));
        const chunks: Uint8Array[] = [];
        for (let at = 0; at < stream.length; ) {
          const [cut = 1] = [cuts.next().value];
          chunks.push(stream.subarray(at, at + cut + 1));
          at += cut + 1;
        }
        const heard = read(chunks).messages as { input: unknown; bytes?: unknown }[];
        const plain = (one: unknown) => JSON.stringify(one); // JSON has no minus nought
        expect(heard.map((one) => plain(one.input))).toEqual(values.map((one) => plain(asBuffers(one))));
      }),
    );
  });

  it("beyond the limit are skipped to their end", () => {
    const long = `{"kind":"done","id":7,"value":"${"x".repeat(200)}"}`;
    const attached = `{"kind":"done","id":8,"value":null,"bytes":[{"at":["value"],"size":300}]}\n${"y".repeat(300)}`;
    const after = '{"kind":"pong","n":1}';
    const heard = read(
      [bytes(`${long.slice(0, 150)}`), bytes(`${long.slice(150)}\n${attached}${after}\n`)],
      100,
    );
    expect(heard).toMatchObject({ messages: [{ kind: "pong" }], breaches: [] });
    expect(heard.tooLong.map(([head, size]) => [head.slice(0, 22), size])).toEqual([
      ['{"kind":"done","id":7,', long.length],
      ['{"kind":"done","id":8,', attached.length - 1],
    ]);
  });

  it.each([
    ["Loading…", "Loading…"],
    ["", ""],
    ["[]", "[]"],
    ["null", "null"],
    ['{"kind":"done","id":1,"bytes":[{"at":["value"],"size":-1}]}', undefined],
    ['{"kind":"done","id":1,"bytes":[{"at":["nowhere"],"size":0}]}', undefined],
    ['{"kind":"done","id":1,"bytes":[{"at":[],"size":0}]}', undefined],
    ['{"kind":"done","id":1,"value":{},"bytes":[{"at":["value","__proto__"],"size":0}]}', undefined],
  ])("that are none are shown, and nothing is read after them: %s", (line, shown) => {
    const heard = read([bytes(`${line}\n{"kind":"pong","n":1}\n`)]);
    expect(heard.messages).toEqual([]);
    expect(heard.breaches).toHaveLength(1);
    if (shown !== undefined) expect(heard.breaches).toEqual([shown]);
  });

  it("are refused by name where they are too long to be sent", () => {
    expect(() => frame(call(1, "x".repeat(200)), 100)).toThrow(/call is \d+ bytes long/);
    expect(() => frame(call(1, new Uint8Array(200)), 300)).toThrow(/host\.maxMessageMb/);
    expect(() => frame(call(1, { f: () => 1 }), 300)).toThrow(/input\.f is a function/);
  });
});

/** What is read back is a Buffer, which writes itself otherwise. */
function asBuffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map(asBuffers);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, asBuffers(inner)]));
}
