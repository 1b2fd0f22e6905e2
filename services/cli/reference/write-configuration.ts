/** Writes docs/configuration.md: `npm run docs:config`. A test fails when it is not current. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageDir } from "../../version.ts";
import { configurationReference } from "./configuration.ts";

writeFileSync(join(packageDir(), "docs", "configuration.md"), configurationReference());
