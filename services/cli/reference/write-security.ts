/** Writes the tables of roles into docs/security.md: `npm run docs:security`. A test fails when they are not current. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { roleTables } from "../../../shared/security/index.ts";
import { packageDir } from "../../version.ts";

const path = join(packageDir(), "docs", "security.md");
const [before = "", , after = ""] = readFileSync(path, "utf8").split(/<!-- (?:roles|end of roles) -->\n/);
writeFileSync(path, `${before}<!-- roles -->\n${roleTables()}<!-- end of roles -->\n${after}`);
