/** Every ```ts block of every page type-checks, every ```json block is JSON, every link leads to a page. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { wholeProgram } from "./preludes.ts";

const root = resolve(import.meta.dirname, "../../..");
/** The public API as TypeScript prints it: declarations that a test compares with the sources. */
const generated = ["api.md"];
const pages = readdirSync(join(root, "docs")).filter(
  (name) => name.endsWith(".md") && !generated.includes(name),
);

const blocksOf = (page: string, language: string): string[] =>
  [...readFileSync(join(root, "docs", page), "utf8").matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, named]) => named === language)
    .map(([, , code]) => code ?? "");

it("has code that type-checks", { timeout: 120_000 }, () => {
  // Inside the repository, so that packages are found; never part of it.
  const folder = join(root, "node_modules", ".cache", `holdfast-docs-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    for (const page of pages) {
      for (const [index, code] of blocksOf(page, "ts").entries())
        writeFileSync(join(folder, `${page.replace(".md", "")}-${index + 1}.ts`), wholeProgram(page, code));
    }
    const settings = {
      extends: join(root, "tsconfig.json"),
      compilerOptions: { noEmit: true, noUnusedLocals: false, rootDir: root },
      include: [join(folder, "*.ts")],
      exclude: [],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    let complaints = "";
    try {
      execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8", stdio: "pipe", cwd: root });
    } catch (error) {
      complaints = error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
    }
    expect(complaints).toBe("");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("has JSON that is JSON", () => {
  for (const page of pages)
    for (const code of blocksOf(page, "json")) expect(() => JSON.parse(code), page).not.toThrow();
});

it("links only to pages that are there", () => {
  const broken: string[] = [];
  for (const page of readdirSync(join(root, "docs")).filter((name) => /\.(md|txt)$/.test(name))) {
    const text = readFileSync(join(root, "docs", page), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\(((?!https?:)[\w./-]+)(?:#[\w-]*)?\)/g)) {
      if (target !== "" && !existsSync(resolve(root, "docs", target))) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});
