/** docs/errors.md as text: every code with its cause and remedy. Pure. */
import { codeGroups } from "../../../shared/errors/codes/index.ts";

export function errorsReference(): string {
  const groups = codeGroups.map(({ title, about, codes }) =>
    [
      `## ${title}`,
      "",
      `${about[0]?.toUpperCase()}${about.slice(1)}.`,
      "",
      "| code | cause | remedy |",
      "| --- | --- | --- |",
      ...Object.entries(codes).map(
        ([code, { cause, remedy }]) => `| \`${code}\` | ${cell(cause)} | ${cell(remedy)} |`,
      ),
    ].join("\n"),
  );
  return `${head}\n\n${groups.join("\n\n")}\n`;
}

const cell = (text: string): string => text.replaceAll("|", "\\|");

const head = `# Error codes

Written by \`npm run docs:errors\` from \`shared/errors/codes\`; do not edit it here.

Every error has a \`code\` that stays the same, a \`message\` for people that may change, and often a \`hint\`. Programs match the code: \`error.code === "session_lost"\`, \`isSessionLost(error)\`, \`{"ok":false,"error":{"code":…}}\` over NATS and HTTP. What your own code throws keeps its own code or class name. Exit codes of the command line are in [cli.md](cli.md).`;
