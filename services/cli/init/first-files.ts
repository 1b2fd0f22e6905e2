/** The files that `holdfast init` writes, as text. Pure. The application is the one in the README. */

export const firstFiles = (name: string, holdfast: string): Readonly<Record<string, string>> => ({
  "package.json": `${JSON.stringify(
    {
      name,
      version: "0.0.0",
      private: true,
      type: "module",
      engines: { node: ">=20.19" },
      scripts: {
        dev: "holdfast dev --app app.ts --watch",
        test: "holdfast dev --app app.ts --demo test.ts --once --data-dir .holdfast-test",
        check: "tsc",
      },
      dependencies: { holdfast, zod: "^4.0.0" },
      devDependencies: { "@types/node": "^20.19.0", typescript: ">=5.8" },
      // The latest version of this NATS library requires Node 22, this one Node 20: npm prints no warning.
      overrides: { "@nats-io/nuid": "2.0.3" },
    },
    null,
    2,
  )}\n`,
  ".gitignore": "node_modules/\n.holdfast/\n.holdfast-test/\n",
  "tsconfig.json": `${JSON.stringify({ compilerOptions }, null, 2)}\n`,
  "app.ts": app,
  "test.ts": test,
  "README.md": `# ${name}\n\n${readme}`,
});

/** Node runs the files as they are, so TypeScript only checks them. */
const compilerOptions = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  noEmit: true,
};

const app = `import { call, defineActivity, defineOrchestration, defineSession } from "holdfast";
import { z } from "zod";

/** Ordinary code: fetch, read, write. Tried again when it fails. */
export const lengthOf = defineActivity("length-of", {
  run: async (_ctx, word: string) => word.length,
});

/** State that one worker keeps in memory: init is the expensive part and runs once. */
export const tally = defineSession("tally", {
  init: async () => ({ total: 0 }),
  calls: { add: call({ run: (state: { total: number }, n: number) => (state.total += n) }) },
});

/** Survives the death of every process it runs on. */
export const measure = defineOrchestration("measure", {
  input: z.object({ words: z.array(z.string()) }),
  async run(ctx, { words }) {
    await using session = await ctx.openSession(tally, { onLost: "reclaim" });
    const lengths = await Promise.all(words.map((word) => ctx.run(lengthOf, word)));
    for (const length of lengths) await session.add(length);
    return await session.add(0);
  },
});
`;

const test = `import assert from "node:assert/strict";
import type { RunDemo } from "holdfast";
import { measure } from "./app.ts";

/** Run by \`npm test\`: everything is up, the client is connected; what is thrown here fails the test. */
export const runDemo: RunDemo = async ({ client, say }) => {
  const handle = await client.start(measure, { words: ["hold", "fast"] });
  assert.equal(await handle.result({ timeout: "60s" }), 8);
  say("measure adds up");
};
`;

const readme = `\`\`\`
npm install
npm test        # runs it once, with everything it needs, and checks the result
npm run check   # types
npm run dev     # serves it, with a dashboard, and loads it again when you save; then, in another terminal:
npx holdfast start measure --input '{"words":["hold","fast"]}' --wait
\`\`\`

\`app.ts\` is the application, \`test.ts\` its test.
`;
