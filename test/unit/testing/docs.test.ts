/** Every block of docs/testing.md runs as it stands there. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");
const text = readFileSync(join(root, "docs/testing.md"), "utf8");
const blocks = [...text.matchAll(/^## (.+)$|^```ts\n([\s\S]*?)^```$/gm)].reduce(
  (found, [, title, code]) => {
    if (title !== undefined) found.title = title;
    else if (code !== undefined) found.all.push([`${found.title} ${found.all.length + 1}`, code] as const);
    return found;
  },
  { title: "First", all: [] as (readonly [string, string])[] },
).all;

const folder = mkdtempSync(join(root, "test/unit/testing/.blocks-"));
afterAll(() => rmSync(folder, { recursive: true }));

test.each(blocks)("%s", async (name, code) => {
  const imports = code
    .replaceAll('"holdfast/testing"', JSON.stringify(join(root, "shared/testing/index.ts")))
    .replaceAll('"holdfast"', JSON.stringify(join(root, "shared/sdk/index.ts")))
    .replaceAll('"../examples', `"${join(root, "examples")}`);
  const file = join(folder, `${name.replaceAll(" ", "-")}.ts`);
  writeFileSync(file, `import assert from "node:assert/strict";\n${imports}`);
  await import(file);
});
