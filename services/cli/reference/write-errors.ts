/** Writes docs/errors.md: `npm run docs:errors`. A test fails when it is not current. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageDir } from "../../version.ts";
import { errorsReference } from "./errors.ts";

writeFileSync(join(packageDir(), "docs", "errors.md"), errorsReference());
