/** Writes what a run has shown into docs/proof.md, between the marks of that run, and nothing else of the page. */
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const proof = fileURLToPath(new URL("../../../docs/proof.md", import.meta.url));

/** What docs/proof.md says of that run. */
export function provedBy(run: string): string {
  const [, lines = ""] =
    new RegExp(`<!-- ${run} -->\\n([\\s\\S]*?)<!-- /${run} -->`).exec(readFileSync(proof, "utf8")) ?? [];
  return lines.trim();
}

export async function recordProof(run: string, lines: string): Promise<void> {
  const text = await readFile(proof, "utf8");
  const marked = new RegExp(`(<!-- ${run} -->\\n)[\\s\\S]*?(<!-- /${run} -->)`);
  if (!marked.test(text)) throw new Error(`docs/proof.md has no marks <!-- ${run} -->`);
  await writeFile(
    proof,
    text.replace(marked, (_all, from: string, to: string) => `${from}\n${lines}\n\n${to}`),
  );
}
