/** Writes docs/cli.md: `npm run docs:cli`. A test fails when it is not current. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageDir } from "../../version.ts";
import { specOf } from "../completion/index.ts";
import { program } from "../program.ts";
import { cliReference } from "./reference.ts";

const root = program({ env: {}, stdout: process.stdout, stderr: process.stderr, exitCode: 0 });
writeFileSync(join(packageDir(), "docs", "cli.md"), cliReference(specOf(root)));
