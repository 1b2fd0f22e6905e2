/** Writes the tables of roles into docs/security.md: `npm run docs:security`. A test fails when they are not current. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { defaultTopology, subjects, topology } from "../../../shared/bus/index.ts";
import { headerReach, headerTable, permissionsOf, roleTables } from "../../../shared/security/index.ts";
import { packageDir } from "../../version.ts";

const names = subjects();
const streams = topology(names, { ...defaultTopology, historyShards: 1 });
const written = {
  roles: roleTables(),
  headers: headerTable((role) => headerReach(permissionsOf(role, names), streams)),
};

const path = join(packageDir(), "docs", "security.md");
let text = readFileSync(path, "utf8");
for (const [part, table] of Object.entries(written)) {
  const [before = "", , after = ""] = text.split(new RegExp(`<!-- (?:end of )?${part} -->\n`));
  text = `${before}<!-- ${part} -->\n${table}<!-- end of ${part} -->\n${after}`;
}
writeFileSync(path, text);
