/**
 * Every ```ts block of every page type-checks, JSON, JavaScript and Python are such, every link leads to a page, and the
 * README shows the application that the tests run.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { wholeProgram } from "./preludes.ts";

const root = resolve(import.meta.dirname, "../../..");
/** The public API as TypeScript prints it: declarations that a test compares with the sources. */
const generated = ["api.md"];
const pagesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !generated.includes(name))
    .map((name) => join(folder, name));
const pages = ["README.md", "CONTRIBUTING.md", ...pagesIn("docs"), ...pagesIn("examples")];

const blocksOf = (page: string, language: string): string[] =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .filter(([, named]) => named === language)
    .map(([, , code]) => code ?? "");

it("has code that type-checks", { timeout: 120_000 }, () => {
  // Inside the repository, so that packages are found; never part of it.
  const folder = join(root, "node_modules", ".cache", `holdfast-docs-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    for (const page of pages) {
      for (const [index, code] of blocksOf(page, "ts").entries())
        writeFileSync(
          join(folder, `${page.replace(/\.md$/, "").replaceAll("/", "-")}-${index + 1}.ts`),
          wholeProgram(page, code),
        );
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
  for (const page of pages) {
    const values = blocksOf(page, "jsonl").flatMap((code) => code.trim().split("\n"));
    for (const code of [...values, ...blocksOf(page, "json")])
      expect(() => JSON.parse(code), page).not.toThrow();
  }
});

it("has JavaScript and Python that can be read", () => {
  const parse = "import ast, sys; ast.parse(sys.stdin.read())";
  for (const page of pages) {
    for (const code of blocksOf(page, "js")) expect(() => new Function(code), page).not.toThrow();
    for (const input of blocksOf(page, "python")) {
      const parsed = spawnSync("python3", ["-c", parse], { input, encoding: "utf8" });
      if (parsed.error === undefined) expect(parsed.stderr, page).toBe("");
    }
  }
});

/** How the code of each language is checked; `text` is for pictures and formats, never for commands. */
const languages: Readonly<Record<string, string>> = {
  ...{ ts: "type-checked here", js: "read here", python: "read here, run by npm run test:clients" },
  ...{ json: "parsed here", jsonl: "parsed here", sh: "run by test/e2e/documents.test.ts" },
  ...{ go: "run by npm run test:clients", rust: "quoted from duroxide", text: "not code" },
  ...{ dockerfile: "npm run test:compose", yaml: "npm run test:compose", mermaid: "drawn from the imports" },
};

it("names the language of every block, so that no block is left unchecked", () => {
  const wrong: string[] = [];
  for (const page of [...pages, ...pagesIn("services"), "bench/README.md", "CHANGELOG.md", "SECURITY.md"]) {
    const fences = readFileSync(join(root, page), "utf8").match(/^```.*$/gm) ?? [];
    for (const [index, fence] of fences.entries()) {
      const begins = index % 2 === 0;
      if (begins ? !(fence.slice(3) in languages) : fence !== "```") wrong.push(`${page}: ${fence}`);
    }
    const commands = blocksOf(page, "text").filter((code) => /^(npx|npm|holdfast|nats|curl) /m.test(code));
    if (page !== "docs/cli.md") wrong.push(...commands.map((code) => `${page}: a command as text: ${code}`));
  }
  expect(wrong).toEqual([]);
});

it("shows in the README what examples/first is", () => {
  const [shown = ""] = blocksOf("README.md", "ts");
  const [path = "", ...code] = shown.split("\n");
  expect(code.join("\n")).toBe(readFileSync(join(root, path.replace("// ", "")), "utf8"));
});

/** As GitHub makes the anchor of a heading. */
const anchorsIn = (text: string): string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );

it("links only to pages and headings that are there", () => {
  const broken: string[] = [];
  for (const page of [...pages, "docs/llms.txt", "docs/api.md", "SECURITY.md", "CHANGELOG.md"]) {
    const text = readFileSync(join(root, page), "utf8");
    for (const [, target = "", anchor] of text.matchAll(/\]\(((?!https?:)[\w./-]*)(?:#([\w-]*))?\)/g)) {
      const path = target === "" ? join(root, page) : resolve(root, page, "..", target);
      const there =
        existsSync(path) &&
        (anchor === undefined ||
          !path.endsWith(".md") ||
          anchorsIn(readFileSync(path, "utf8")).includes(anchor));
      if (!there) broken.push(`${page}: ${target}${anchor === undefined ? "" : `#${anchor}`}`);
    }
  }
  expect(broken).toEqual([]);
});

/** What users have, or a build makes. */
const notHere = ["compose.override.yaml", "holdfast/python/holdfast_host.py"];

it("names only files and folders that are there", () => {
  const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    ...{ cwd: root, encoding: "utf8" },
  }).split("\n");
  const folders = new Set(files.flatMap((path) => path.split("/").slice(0, -1)));
  const readmes = ["services", "shared", "schemas", "test"].flatMap(pagesIn);
  const wrong: string[] = [];
  for (const page of [...pages, ...readmes]) {
    const text = readFileSync(join(root, page), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
    for (const [, name = ""] of text.matchAll(/`([\w./-]+)`/g)) {
      const isFolder = /^[\w-]+\/$/.test(name) && !folders.has(name.slice(0, -1));
      const isFile =
        /^[\w-][\w./-]*\.(tsx?|mjs|py|go|conf|yaml)$/.test(name) &&
        !notHere.includes(name) &&
        !files.some((path) => path === name || path.endsWith(`/${name}`)) &&
        !existsSync(resolve(root, page, "..", name));
      if (isFolder || isFile) wrong.push(`${page}: ${name}`);
    }
  }
  expect(wrong).toEqual([]);
});
