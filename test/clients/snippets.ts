/** Programs and commands as they stand in the documents, made to run against a server of this test. Pure. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** The first code block of a language behind a heading, or of the page. */
export function blockOf(page: string, heading: string | undefined, language: string): string {
  const text = readFileSync(resolve(root, page), "utf8");
  const from = heading === undefined ? 0 : text.indexOf(`\n## ${heading}\n`);
  const block = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(text.slice(from));
  if (from < 0 || block?.[1] === undefined)
    throw new Error(`${page} has no ${language} block below "${heading}"`);
  return block[1];
}

/** The same ids stand in several documents: each gets its own, and the address of this run. */
export const forRun = (code: string, source: string, natsUrl: string): string =>
  code
    .replaceAll(/\b(order|cart)-(\d+)/g, `${source}-$1-$2`)
    .replaceAll(/nats:\/\/127\.0\.0\.1:(4222|…)/g, natsUrl);

export interface ShownCommand {
  command: string;
  /** What the document says that it prints, where it does. */
  prints: unknown;
}

/** One command a line; a comment that is JSON is what the command prints. */
export function commandsOf(block: string): ShownCommand[] {
  return block.split("\n").flatMap((line) => {
    if (!/^\s*nats /.test(line)) return [];
    const [command = "", comment = ""] = line.split(/\s+# /);
    const [json] = /^\{.*\}(?=;|$)/.exec(comment.trim()) ?? [];
    return [{ command, prints: json === undefined ? undefined : JSON.parse(json) }];
  });
}
