/** The commands of the documents, as a reader would copy them. Pure. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../../..");

const pagesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join(folder, path));

/** The reference of the command line is written from the program itself, and shows no command to copy. */
export const pagesWithCommands = (): string[] =>
  ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...pagesIn("docs"), ...pagesIn("examples")].filter(
    (page) => page !== "docs/cli.md" && shownCommands(page).length > 0,
  );

export interface ShownCommand {
  /** Without its comment. */
  line: string;
  /** The application that its block tells the reader to serve first. */
  app: string | undefined;
  /** What the comment says that it prints, if the comment is JSON. */
  prints: unknown;
  /** The comment says that it goes on in another terminal while the next ones run. */
  beside: boolean;
}

/** Each line of the shell blocks of a page; a line that ends with a backslash goes on. */
export function shownCommands(page: string): ShownCommand[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  return blocks.flatMap((block) => {
    const app = /^npx holdfast dev --app (\S+)/m.exec(block)?.[1];
    return block
      .replaceAll(/\\\n\s*/g, " ")
      .split("\n")
      .filter((line) => line.trim() !== "" && !/^#|^npx holdfast dev /.test(line))
      .map((line) => {
        const [command = "", comment = ""] = line.split(/\s+# /);
        const [json] = /^\{.*\}(?=;|$)/.exec(comment.trim()) ?? [];
        return {
          line: command.trim(),
          app,
          prints: json === undefined ? undefined : JSON.parse(json),
          beside: comment.startsWith("in another terminal:"),
        };
      });
  });
}
