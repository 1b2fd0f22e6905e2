import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

const Manifest = z.object({
  weightsManifest: z.tuple([
    z.object({
      paths: z.array(z.string()),
      weights: z.array(
        z.object({ name: z.string(), shape: z.array(z.number()), dtype: z.enum(["float32", "int32"]) }),
      ),
    }),
  ]),
});

export interface Weight {
  shape: number[];
  data: Float32Array;
}

/** The weights of a TensorFlow.js graph model: one run of 4-byte numbers, cut up by the manifest. */
export class Weights {
  readonly #byName = new Map<string, Weight>();

  constructor(folder: string) {
    const manifest = Manifest.parse(JSON.parse(readFileSync(join(folder, "model.json"), "utf8")));
    const [{ paths, weights }] = manifest.weightsManifest;
    const bytes = Buffer.concat(paths.map((path) => readFileSync(join(folder, path))));
    let offset = bytes.byteOffset;
    for (const { name, shape, dtype } of weights) {
      const length = shape.reduce((product, size) => product * size, 1);
      const end = offset + 4 * length;
      if (dtype === "float32") {
        this.#byName.set(name, { shape, data: new Float32Array(bytes.buffer.slice(offset, end)) });
      }
      offset = end;
    }
  }

  /** The names carry long TensorFlow scopes, so a weight is named by a piece of it that only it has. */
  find(piece: string): Weight {
    const matches = [...this.#byName].filter(([name]) => name.endsWith(piece) || name.includes(`${piece}/`));
    const [match] = matches;
    if (!match || matches.length > 1)
      throw new Error(`${matches.length} weights are named …${piece}, expected one`);
    return match[1];
  }
}
